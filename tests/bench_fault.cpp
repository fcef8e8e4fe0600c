// SPDX-License-Identifier: MIT
// A library to preload into ferry-bench that makes Ferry's blocking collectives wrong in the way
// that BENCH_FAULT names, on rank 0. bench_test.py demands that each of them is noticed.
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include <ferry/ferry.h>

namespace {

using Collective = int (*)(const ferry_call*, ferry_request*);

std::size_t recv_bytes(const ferry_call& call) {
  int ranks = 1;
  MPI_Comm_size(call.comm, &ranks);
  const int blocks = call.operation == FERRY_BCAST ? 1 : ranks;
  return static_cast<std::size_t>(call.recvcount) * static_cast<std::size_t>(blocks);
}

void spoil(const ferry_call& call, std::string_view fault) {
  auto* const recv = static_cast<unsigned char*>(call.recvbuf);
  const std::size_t bytes = recv_bytes(call);
  if (fault == "first-byte") recv[0] ^= 1;
  if (fault == "last-byte") recv[bytes - 1] ^= 0x80;
  if (fault == "before") recv[-1] = static_cast<unsigned char>(~recv[-1]);
  if (fault == "behind") recv[bytes] = static_cast<unsigned char>(~recv[bytes]);
  if (fault == "send") static_cast<unsigned char*>(const_cast<void*>(call.sendbuf))[0] ^= 1;
  if (fault == "swap") std::swap_ranges(recv, recv + call.recvcount, recv + call.recvcount);
}

int run_wrong(const ferry_call& call, ferry_request* request) {
  static const auto real = reinterpret_cast<Collective>(dlsym(RTLD_NEXT, "ferry_collective"));
  static const char* const fault = std::getenv("BENCH_FAULT");
  static bool skip = false;
  int rank = 0;
  MPI_Comm_rank(call.comm, &rank);
  skip = !skip;
  // All ranks leave the same calls out, else the others would wait for this one.
  if (std::string_view(fault) == "never" || (std::string_view(fault) == "every-other" && skip)) {
    return MPI_SUCCESS;
  }
  const int code = real(&call, request);
  if (code == MPI_SUCCESS && rank == 0) spoil(call, fault);
  return code;
}

ferry_call blocking(ferry_operation operation, MPI_Comm comm) {
  ferry_call call{};
  call.size = sizeof(ferry_call);
  call.operation = operation;
  call.form = FERRY_BLOCKING;
  call.comm = comm;
  return call;
}

int exchange(
    ferry_operation operation, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
    void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  ferry_call call = blocking(operation, comm);
  call.sendbuf = sendbuf;
  call.sendcount = sendcount;
  call.sendtype = sendtype;
  call.recvbuf = recvbuf;
  call.recvcount = recvcount;
  call.recvtype = recvtype;
  return run_wrong(call, nullptr);
}

} // namespace

extern "C" {

FERRY_API int ferry_collective(const ferry_call* call, ferry_request* request) {
  return run_wrong(*call, request);
}

FERRY_API int ferry_alltoall(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return exchange(FERRY_ALLTOALL, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

FERRY_API int ferry_allgather(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return exchange(
      FERRY_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

FERRY_API int ferry_bcast(
    void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  ferry_call call = blocking(FERRY_BCAST, comm);
  call.recvbuf = buffer;
  call.recvcount = count;
  call.recvtype = datatype;
  call.root = root;
  return run_wrong(call, nullptr);
}

} // extern "C"
