// SPDX-License-Identifier: MIT
// The collectives of ferry.h: every form becomes a ferry_call, every ferry_call a Call.
#include <fmt/format.h>

#include "include/ferry/ferry.h"
#include "lib/api/call.hpp"
#include "lib/api/report.hpp"

namespace ferry::core {
namespace {

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

Operation operation_of(const ferry_call& call) {
  switch (call.operation) {
    case FERRY_ALLTOALL:
      return Operation::alltoall;
    case FERRY_ALLGATHER:
      return Operation::allgather;
    case FERRY_BCAST:
      return Operation::broadcast;
  }
  throw Failure(
      ErrorKind::argument, fmt::format("unknown operation {}", static_cast<int>(call.operation)),
      "use one of enum ferry_operation");
}

Form form_of(const ferry_call& call) {
  switch (call.form) {
    case FERRY_BLOCKING:
      return Form::blocking;
    case FERRY_NONBLOCKING:
      return Form::nonblocking;
    case FERRY_PERSISTENT:
      return Form::persistent;
  }
  throw Failure(
      ErrorKind::argument, fmt::format("unknown form {}", static_cast<int>(call.form)),
      "use one of enum ferry_form");
}

int run(const ferry_call& given, ferry_request* request) {
  if (request != nullptr) *request = FERRY_REQUEST_NULL;
  Call call;
  call.function = function_name(given);
  call.comm = given.comm;
  call.quiet = (given.flags & FERRY_NO_ERROR_HANDLER) != 0;
  return guarded({call.function, call.comm, call.quiet}, [&] {
    call.operation = operation_of(given);
    call.form = form_of(given);
    call.root = given.root;
    call.send = {given.sendbuf, given.sendcount, given.sendtype, {}, {}, nullptr};
    call.recv = {given.recvbuf, given.recvcount, given.recvtype, {}, {}, nullptr};
    return run_call(call, request);
  });
}

// Block collectives differ in the operation alone.
int run_blocks(
    ferry_operation operation, ferry_form form, const void* sendbuf, MPI_Count sendcount,
    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
    ferry_request* request) {
  const ferry_call call{sizeof(ferry_call), operation, form,    0,         0,        sendbuf,
                        sendcount,          sendtype,  recvbuf, recvcount, recvtype, comm};
  return run(call, request);
}

int run_broadcast(
    ferry_form form, void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
    ferry_request* request) {
  const ferry_call call{sizeof(ferry_call), FERRY_BCAST, form,  0,        root, nullptr, 0,
                        MPI_DATATYPE_NULL,  buffer,      count, datatype, comm};
  return run(call, request);
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
  return ferry::core::run(*call, request);
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
