// SPDX-License-Identifier: MIT
// The collectives of ferry.h: every form becomes a ferry_call, every ferry_call a CollectiveDesc.
#include "include/ferry/ferry.h"
#include "lib/api/describe_call.hpp"
#include "lib/api/report.hpp"
#include "lib/api/request.hpp"
#include "lib/api/state.hpp"

namespace ferry::core {
namespace {

int run_blocking(const CallSite& site, Communicator& state, const CollectiveDesc& desc) {
  LaneOp op;
  op.desc = desc;
  state.post(op);
  const Status status = state.wait(op);
  return status.ok() ? MPI_SUCCESS : report(site, status);
}

int run_nonblocking(
    const CallSite& site, const std::shared_ptr<Communicator>& state, const CollectiveDesc& desc,
    ferry_request* request) {
  auto handle = std::make_unique<ferry_request_s>();
  handle->state = state;
  handle->comm = site.comm;
  handle->quiet = site.quiet;
  handle->started = true;
  handle->op.desc = desc;
  state->post(handle->op);
  *request = handle.release();
  return MPI_SUCCESS;
}

int init_persistent(
    const CallSite& site, const std::shared_ptr<Communicator>& state, const CollectiveDesc& desc,
    ferry_request* request) {
  auto handle = std::make_unique<ferry_request_s>();
  handle->state = state;
  handle->comm = site.comm;
  handle->quiet = site.quiet;
  handle->plan = state->make_plan(desc);
  *request = handle.release();
  return MPI_SUCCESS;
}

const char* function_name(const ferry_call& call) {
  constexpr const char* kNames[3][3] = {
      {"ferry_alltoall", "ferry_ialltoall", "ferry_alltoall_init"},
      {"ferry_allgather", "ferry_iallgather", "ferry_allgather_init"},
      {"ferry_bcast", "ferry_ibcast", "ferry_bcast_init"}};
  const int operation = static_cast<int>(call.operation) - 1;
  const int form = static_cast<int>(call.form) - 1;
  const bool known = operation >= 0 && operation < 3 && form >= 0 && form < 3;
  return known ? kNames[operation][form] : "ferry_collective";
}

int run_call(const ferry_call& call, ferry_request* request) {
  if (request != nullptr) *request = FERRY_REQUEST_NULL;
  const CallSite site{function_name(call), call.comm, (call.flags & FERRY_NO_ERROR_HANDLER) != 0};
  return guarded(site, [&] {
    if (request == nullptr && call.form != FERRY_BLOCKING) {
      throw Failure(ErrorKind::argument, "request is NULL", "pass the address of a ferry_request");
    }
    StateHolder* holder = find_state(call.comm);
    const int ranks = holder != nullptr ? (*holder)->ranks() : check_communicator(call.comm);
    const CollectiveDesc desc = describe_call(call, ranks);
    const StateHolder& state = *(holder != nullptr ? holder : make_state(call.comm));
    switch (desc.form) {
      case Form::blocking:
        return run_blocking(site, *state, desc);
      case Form::nonblocking:
        return run_nonblocking(site, state, desc, request);
      case Form::persistent:
        return init_persistent(site, state, desc, request);
    }
    return MPI_ERR_INTERN;
  });
}

// Block collectives differ in the operation alone.
int run_blocks(
    ferry_operation operation, ferry_form form, const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
    ferry_request* request) {
  const ferry_call call{sizeof(ferry_call), operation, form,    0,         0,        sendbuf,
                        sendcount,          sendtype,  recvbuf, recvcount, recvtype, comm};
  return run_call(call, request);
}

int run_broadcast(
    ferry_form form, void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
    ferry_request* request) {
  const ferry_call call{sizeof(ferry_call), FERRY_BCAST, form,  0,        root, nullptr, 0,
                        MPI_DATATYPE_NULL,  buffer,      count, datatype, comm};
  return run_call(call, request);
}

} // namespace
} // namespace ferry::core

using ferry::core::run_blocks;
using ferry::core::run_broadcast;

extern "C" {

int ferry_collective(const ferry_call* call, ferry_request* request) {
  if (call == nullptr || call->size != sizeof(ferry_call)) {
    return ferry::core::report(
        {"ferry_collective", MPI_COMM_NULL, false},
        {ferry::core::ErrorKind::argument, "the call is NULL or of another version of ferry.h",
         "set size to sizeof(struct ferry_call) and build against this version"});
  }
  return ferry::core::run_call(*call, request);
}

int ferry_alltoall(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return run_blocks(
      FERRY_ALLTOALL, FERRY_BLOCKING, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
      comm, nullptr);
}

int ferry_allgather(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return run_blocks(
      FERRY_ALLGATHER, FERRY_BLOCKING, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
      comm, nullptr);
}

int ferry_bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return run_broadcast(FERRY_BLOCKING, buffer, count, datatype, root, comm, nullptr);
}

int ferry_ialltoall(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, ferry_request* request) {
  return run_blocks(
      FERRY_ALLTOALL, FERRY_NONBLOCKING, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
      comm, request);
}

int ferry_iallgather(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, ferry_request* request) {
  return run_blocks(
      FERRY_ALLGATHER, FERRY_NONBLOCKING, sendbuf, sendcount, sendtype, recvbuf, recvcount,
      recvtype, comm, request);
}

int ferry_ibcast(
    void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
    ferry_request* request) {
  return run_broadcast(FERRY_NONBLOCKING, buffer, count, datatype, root, comm, request);
}

int ferry_alltoall_init(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info, ferry_request* request) {
  return run_blocks(
      FERRY_ALLTOALL, FERRY_PERSISTENT, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
      comm, request);
}

int ferry_allgather_init(
    const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info, ferry_request* request) {
  return run_blocks(
      FERRY_ALLGATHER, FERRY_PERSISTENT, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
      comm, request);
}

int ferry_bcast_init(
    void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info,
    ferry_request* request) {
  return run_broadcast(FERRY_PERSISTENT, buffer, count, datatype, root, comm, request);
}

} // extern "C"
