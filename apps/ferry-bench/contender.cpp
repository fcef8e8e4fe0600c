// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/contender.hpp"

#include <array>
#include <memory>
#include <utility>

namespace ferry::bench {
namespace {

ferry_call describe(const Options& options, Buffers& buffers, MPI_Comm comm) {
  ferry_call call{};
  call.size = sizeof call;
  call.operation = options.operation;
  call.form = options.form;
  call.flags = FERRY_NO_ERROR_HANDLER;
  call.root = options.root;
  call.sendbuf = buffers.send();
  call.recvbuf = buffers.recv();
  call.sendcount = call.recvcount = static_cast<MPI_Count>(buffers.block_bytes());
  call.sendtype = call.recvtype = MPI_BYTE;
  call.comm = comm;
  return call;
}

void check_ferry(int code) {
  if (code != MPI_SUCCESS) throw Error(code, ferry_error_text());
}

void check_mpi(int code) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(code, std::string("the MPI below: ") + text.data());
}

std::string explain_request(ferry_request request) {
  std::array<char, 1024> text{};
  check_ferry(ferry_explain(request, text.data(), text.size()));
  return text.data();
}

std::string explain_comm(MPI_Comm comm) {
  std::array<char, 1024> text{};
  check_ferry(ferry_comm_explain(comm, text.data(), text.size()));
  return text.data();
}

Contender blocking_ferry(const ferry_call& call) {
  const auto run = [call] { check_ferry(ferry_collective(&call, nullptr)); };
  return {run, [call, run] {
            run();
            return explain_comm(call.comm);
          }};
}

Contender nonblocking_ferry(const ferry_call& call) {
  const auto run = [call] {
    ferry_request request = FERRY_REQUEST_NULL;
    check_ferry(ferry_collective(&call, &request));
    check_ferry(ferry_wait(&request));
  };
  return {run, [call] {
            ferry_request request = FERRY_REQUEST_NULL;
            check_ferry(ferry_collective(&call, &request));
            std::string text = explain_request(request);
            check_ferry(ferry_wait(&request));
            return text;
          }};
}

Contender persistent_ferry(const ferry_call& call) {
  const std::shared_ptr<ferry_request> plan(
      new ferry_request(FERRY_REQUEST_NULL), [](ferry_request* request) {
        if (*request != FERRY_REQUEST_NULL) ferry_request_free(request);
        delete request;
      });
  check_ferry(ferry_collective(&call, plan.get()));
  const auto run = [plan] {
    check_ferry(ferry_start(plan.get()));
    check_ferry(ferry_wait(plan.get()));
  };
  return {run, [plan] { return explain_request(*plan); }};
}

void peer_blocking(const ferry_call& c) {
  switch (c.operation) {
    case FERRY_ALLTOALL:
      return check_mpi(MPI_Alltoall_c(
          c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.comm));
    case FERRY_ALLGATHER:
      return check_mpi(MPI_Allgather_c(
          c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.comm));
    case FERRY_BCAST:
      return check_mpi(MPI_Bcast_c(c.recvbuf, c.recvcount, c.recvtype, c.root, c.comm));
  }
}

void peer_nonblocking(const ferry_call& c) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (c.operation) {
    case FERRY_ALLTOALL:
      check_mpi(MPI_Ialltoall_c(
          c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.comm,
          &request));
      break;
    case FERRY_ALLGATHER:
      check_mpi(MPI_Iallgather_c(
          c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.comm,
          &request));
      break;
    case FERRY_BCAST:
      check_mpi(MPI_Ibcast_c(c.recvbuf, c.recvcount, c.recvtype, c.root, c.comm, &request));
  }
  check_mpi(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

MPI_Request peer_init(const ferry_call& c) {
  MPI_Request request = MPI_REQUEST_NULL;
  switch (c.operation) {
    case FERRY_ALLTOALL:
      check_mpi(MPI_Alltoall_init_c(
          c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.comm,
          MPI_INFO_NULL, &request));
      break;
    case FERRY_ALLGATHER:
      check_mpi(MPI_Allgather_init_c(
          c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.comm,
          MPI_INFO_NULL, &request));
      break;
    case FERRY_BCAST:
      check_mpi(MPI_Bcast_init_c(
          c.recvbuf, c.recvcount, c.recvtype, c.root, c.comm, MPI_INFO_NULL, &request));
  }
  return request;
}

std::function<void()> peer_persistent(const ferry_call& call) {
  const std::shared_ptr<MPI_Request> plan(
      new MPI_Request(MPI_REQUEST_NULL), [](MPI_Request* request) {
        if (*request != MPI_REQUEST_NULL) MPI_Request_free(request);
        delete request;
      });
  *plan = peer_init(call);
  return [plan] {
    check_mpi(MPI_Start(plan.get()));
    check_mpi(MPI_Wait(plan.get(), MPI_STATUS_IGNORE));
  };
}

} // namespace

Contender make_ferry(const Options& options, Buffers& buffers, MPI_Comm comm) {
  const ferry_call call = describe(options, buffers, comm);
  switch (options.form) {
    case FERRY_BLOCKING:
      return blocking_ferry(call);
    case FERRY_NONBLOCKING:
      return nonblocking_ferry(call);
    case FERRY_PERSISTENT:
      break;
  }
  return persistent_ferry(call);
}

Contender make_peer(const Options& options, Buffers& buffers, MPI_Comm comm) {
  const ferry_call call = describe(options, buffers, comm);
  const auto nothing = [] { return std::string(); };
  switch (options.form) {
    case FERRY_BLOCKING:
      return {[call] { peer_blocking(call); }, nothing};
    case FERRY_NONBLOCKING:
      return {[call] { peer_nonblocking(call); }, nothing};
    case FERRY_PERSISTENT:
      break;
  }
  return {peer_persistent(call), nothing};
}

} // namespace ferry::bench
