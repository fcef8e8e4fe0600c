// SPDX-License-Identifier: MIT
// The collectives of the MPI that this is built against. An operation more is a row of kPeers.
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "apps/ferry-bench/contender.hpp"

// MPI 4 has functions with large counts and persistent collectives; an older MPI runs the blocking
// form where a persistent one is asked for, which is what its users do.
#if MPI_VERSION >= 4
#define FERRY_BENCH_MPI(name) name##_c
#else
#define FERRY_BENCH_MPI(name) name
#endif

namespace ferry::bench {
namespace {

constexpr bool kHasPersistent = MPI_VERSION >= 4;

#if MPI_VERSION >= 4
MPI_Count count(MPI_Count bytes) {
  return bytes;
}
#else
int count(MPI_Count bytes) {
  if (bytes > std::numeric_limits<int>::max()) {
    throw std::runtime_error("this MPI takes blocks of less than 2 GiB only");
  }
  return static_cast<int>(bytes);
}
#endif

struct PeerCalls {
  int (*blocking)(const ferry_call&);
  int (*begin)(const ferry_call&, MPI_Request*);
  int (*init)(const ferry_call&, MPI_Request*); // null: none
};

int alltoall(const ferry_call& c) {
  return FERRY_BENCH_MPI(MPI_Alltoall)(
      c.sendbuf, count(c.sendcount), c.sendtype, c.recvbuf, count(c.recvcount), c.recvtype, c.comm);
}

int ialltoall(const ferry_call& c, MPI_Request* request) {
  return FERRY_BENCH_MPI(MPI_Ialltoall)(
      c.sendbuf, count(c.sendcount), c.sendtype, c.recvbuf, count(c.recvcount), c.recvtype, c.comm,
      request);
}

int allgather(const ferry_call& c) {
  return FERRY_BENCH_MPI(MPI_Allgather)(
      c.sendbuf, count(c.sendcount), c.sendtype, c.recvbuf, count(c.recvcount), c.recvtype, c.comm);
}

int iallgather(const ferry_call& c, MPI_Request* request) {
  return FERRY_BENCH_MPI(MPI_Iallgather)(
      c.sendbuf, count(c.sendcount), c.sendtype, c.recvbuf, count(c.recvcount), c.recvtype, c.comm,
      request);
}

int bcast(const ferry_call& c) {
  return FERRY_BENCH_MPI(MPI_Bcast)(c.recvbuf, count(c.recvcount), c.recvtype, c.root, c.comm);
}

int ibcast(const ferry_call& c, MPI_Request* request) {
  return FERRY_BENCH_MPI(MPI_Ibcast)(
      c.recvbuf, count(c.recvcount), c.recvtype, c.root, c.comm, request);
}

int gather(const ferry_call& c) {
  return FERRY_BENCH_MPI(MPI_Gather)(
      c.sendbuf, count(c.sendcount), c.sendtype, c.recvbuf, count(c.recvcount), c.recvtype, c.root,
      c.comm);
}

int igather(const ferry_call& c, MPI_Request* request) {
  return FERRY_BENCH_MPI(MPI_Igather)(
      c.sendbuf, count(c.sendcount), c.sendtype, c.recvbuf, count(c.recvcount), c.recvtype, c.root,
      c.comm, request);
}

int scatter(const ferry_call& c) {
  return FERRY_BENCH_MPI(MPI_Scatter)(
      c.sendbuf, count(c.sendcount), c.sendtype, c.recvbuf, count(c.recvcount), c.recvtype, c.root,
      c.comm);
}

int iscatter(const ferry_call& c, MPI_Request* request) {
  return FERRY_BENCH_MPI(MPI_Iscatter)(
      c.sendbuf, count(c.sendcount), c.sendtype, c.recvbuf, count(c.recvcount), c.recvtype, c.root,
      c.comm, request);
}

int allreduce(const ferry_call& c) {
  return FERRY_BENCH_MPI(MPI_Allreduce)(
      c.sendbuf, c.recvbuf, count(c.recvcount), c.recvtype, c.op, c.comm);
}

int iallreduce(const ferry_call& c, MPI_Request* request) {
  return FERRY_BENCH_MPI(MPI_Iallreduce)(
      c.sendbuf, c.recvbuf, count(c.recvcount), c.recvtype, c.op, c.comm, request);
}

int barrier(const ferry_call& c) {
  return MPI_Barrier(c.comm);
}

int ibarrier(const ferry_call& c, MPI_Request* request) {
  return MPI_Ibarrier(c.comm, request);
}

#if MPI_VERSION >= 4
int alltoallv(const ferry_call& c) {
  return MPI_Alltoallv_c(
      c.sendbuf, c.sendcounts, c.sdispls, c.sendtype, c.recvbuf, c.recvcounts, c.rdispls,
      c.recvtype, c.comm);
}

int ialltoallv(const ferry_call& c, MPI_Request* request) {
  return MPI_Ialltoallv_c(
      c.sendbuf, c.sendcounts, c.sdispls, c.sendtype, c.recvbuf, c.recvcounts, c.rdispls,
      c.recvtype, c.comm, request);
}

int alltoallv_init(const ferry_call& c, MPI_Request* request) {
  return MPI_Alltoallv_init_c(
      c.sendbuf, c.sendcounts, c.sdispls, c.sendtype, c.recvbuf, c.recvcounts, c.rdispls,
      c.recvtype, c.comm, MPI_INFO_NULL, request);
}

int gather_init(const ferry_call& c, MPI_Request* request) {
  return MPI_Gather_init_c(
      c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.root, c.comm,
      MPI_INFO_NULL, request);
}

int scatter_init(const ferry_call& c, MPI_Request* request) {
  return MPI_Scatter_init_c(
      c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.root, c.comm,
      MPI_INFO_NULL, request);
}

int allreduce_init(const ferry_call& c, MPI_Request* request) {
  return MPI_Allreduce_init_c(
      c.sendbuf, c.recvbuf, c.recvcount, c.recvtype, c.op, c.comm, MPI_INFO_NULL, request);
}

int barrier_init(const ferry_call& c, MPI_Request* request) {
  return MPI_Barrier_init(c.comm, MPI_INFO_NULL, request);
}

int alltoall_init(const ferry_call& c, MPI_Request* request) {
  return MPI_Alltoall_init_c(
      c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.comm, MPI_INFO_NULL,
      request);
}

int allgather_init(const ferry_call& c, MPI_Request* request) {
  return MPI_Allgather_init_c(
      c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.comm, MPI_INFO_NULL,
      request);
}

int bcast_init(const ferry_call& c, MPI_Request* request) {
  return MPI_Bcast_init_c(
      c.recvbuf, c.recvcount, c.recvtype, c.root, c.comm, MPI_INFO_NULL, request);
}
#else
// Its counts are int.
int alltoallv(const ferry_call&) {
  throw std::runtime_error("alltoallv is measured beside an MPI 4 only");
}
int ialltoallv(const ferry_call& c, MPI_Request*) {
  return alltoallv(c);
}
constexpr int (*alltoallv_init)(const ferry_call&, MPI_Request*) = nullptr;
constexpr int (*gather_init)(const ferry_call&, MPI_Request*) = nullptr;
constexpr int (*scatter_init)(const ferry_call&, MPI_Request*) = nullptr;
constexpr int (*allreduce_init)(const ferry_call&, MPI_Request*) = nullptr;
constexpr int (*barrier_init)(const ferry_call&, MPI_Request*) = nullptr;
constexpr int (*alltoall_init)(const ferry_call&, MPI_Request*) = nullptr;
constexpr int (*allgather_init)(const ferry_call&, MPI_Request*) = nullptr;
constexpr int (*bcast_init)(const ferry_call&, MPI_Request*) = nullptr;
#endif

const std::map<ferry_operation, PeerCalls> kPeers = {
    {FERRY_ALLTOALL, {alltoall, ialltoall, alltoall_init}},
    {FERRY_ALLGATHER, {allgather, iallgather, allgather_init}},
    {FERRY_BCAST, {bcast, ibcast, bcast_init}},
    {FERRY_ALLTOALLV, {alltoallv, ialltoallv, alltoallv_init}},
    {FERRY_GATHER, {gather, igather, gather_init}},
    {FERRY_SCATTER, {scatter, iscatter, scatter_init}},
    {FERRY_ALLREDUCE, {allreduce, iallreduce, allreduce_init}},
    {FERRY_BARRIER, {barrier, ibarrier, barrier_init}}};

void check(int code) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string("the MPI below: ") + text);
}

std::function<void()> persistent(const PeerCalls& peer, const ferry_call& call) {
  const std::shared_ptr<MPI_Request> plan(
      new MPI_Request(MPI_REQUEST_NULL), [](MPI_Request* request) {
        if (*request != MPI_REQUEST_NULL) MPI_Request_free(request);
        delete request;
      });
  check(peer.init(call, plan.get()));
  return [plan] {
    check(MPI_Start(plan.get()));
    check(MPI_Wait(plan.get(), MPI_STATUS_IGNORE));
  };
}

} // namespace

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
  call.sendcounts = call.recvcounts = buffers.counts();
  call.sdispls = call.rdispls = buffers.displs();
  if (options.operation == FERRY_ALLREDUCE) {
    call.op = MPI_SUM;
    call.sendtype = call.recvtype = MPI_UINT64_T;
    call.sendcount = call.recvcount = call.recvcount / 8;
  }
  call.comm = comm;
  return call;
}

Contender make_peer(const Options& options, Buffers& buffers, MPI_Comm comm) {
  const ferry_call call = describe(options, buffers, comm);
  const PeerCalls& peer = kPeers.at(options.operation);
  const auto nothing = [] { return std::string(); };
  if (options.form == FERRY_PERSISTENT && kHasPersistent) return {persistent(peer, call), nothing};
  if (options.form != FERRY_NONBLOCKING) {
    return {[&peer, call] { check(peer.blocking(call)); }, nothing};
  }
  return {
      [&peer, call] {
        MPI_Request request = MPI_REQUEST_NULL;
        check(peer.begin(call, &request));
        check(MPI_Wait(&request, MPI_STATUS_IGNORE));
      },
      nothing};
}

Contender make_limit(Buffers& buffers) {
  return {[&buffers] { buffers.copy_bare(); }, [] { return std::string(); }};
}

} // namespace ferry::bench

#undef FERRY_BENCH_MPI
