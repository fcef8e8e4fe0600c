// SPDX-License-Identifier: MIT
// The collectives of ferry.h: each function in each form, and each ferry_call, becomes a Call.
#include <fmt/format.h>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "include/ferry/ferry.h"
#include "lib/api/call.hpp"
#include "lib/api/report.hpp"
#include "lib/api/sides.hpp"

namespace ferry::core {
namespace {

// Which fields of a ferry_call describe a side.
enum class Fields { none, block, ragged, mixed, counted };

struct Entry {
  const char* names[3]; // of the functions, by form
  Operation operation;
  Fields send;
  Fields recv;
};

#define FERRY_NAMES(name) \
  { "ferry_" #name, "ferry_i" #name, "ferry_" #name "_init" }

// In the order of enum ferry_operation, which begins with 1.
constexpr Entry kEntries[] = {
    {FERRY_NAMES(alltoall), Operation::alltoall, Fields::block, Fields::block},
    {FERRY_NAMES(allgather), Operation::allgather, Fields::block, Fields::block},
    {FERRY_NAMES(bcast), Operation::broadcast, Fields::none, Fields::block},
    {FERRY_NAMES(alltoallv), Operation::alltoall, Fields::ragged, Fields::ragged},
    {FERRY_NAMES(alltoallw), Operation::alltoall, Fields::mixed, Fields::mixed},
    {FERRY_NAMES(allgatherv), Operation::allgather, Fields::block, Fields::ragged},
    {FERRY_NAMES(gather), Operation::gather, Fields::block, Fields::block},
    {FERRY_NAMES(gatherv), Operation::gather, Fields::block, Fields::ragged},
    {FERRY_NAMES(scatter), Operation::scatter, Fields::block, Fields::block},
    {FERRY_NAMES(scatterv), Operation::scatter, Fields::ragged, Fields::block},
    {FERRY_NAMES(barrier), Operation::barrier, Fields::none, Fields::none},
    {FERRY_NAMES(reduce_scatter), Operation::reduce_scatter, Fields::block, Fields::counted},
    {FERRY_NAMES(reduce_scatter_block), Operation::reduce_scatter, Fields::block, Fields::block},
    {FERRY_NAMES(allreduce), Operation::allreduce, Fields::block, Fields::block},
    {FERRY_NAMES(reduce), Operation::reduce, Fields::block, Fields::block}};
static_assert(std::size(kEntries) == FERRY_REDUCE);

#undef FERRY_NAMES

const Entry* find_entry(const ferry_call& call) {
  const int index = static_cast<int>(call.operation) - 1;
  const bool known = index >= 0 && index < static_cast<int>(std::size(kEntries));
  return known ? &kEntries[index] : nullptr;
}

const Entry& entry_of(const ferry_call& call) {
  const Entry* entry = find_entry(call);
  if (entry != nullptr) return *entry;
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

const char* function_name(const ferry_call& call) {
  const Entry* entry = find_entry(call);
  const int form = static_cast<int>(call.form) - 1;
  return entry != nullptr && form >= 0 && form < 3 ? entry->names[form] : "ferry_collective";
}

Side send_side(const ferry_call& c, Fields fields) {
  switch (fields) {
    case Fields::block:
      return block(c.sendbuf, c.sendcount, c.sendtype);
    case Fields::ragged:
      return ragged(c.sendbuf, c.sendcounts, c.sdispls, c.sendtype);
    case Fields::mixed:
      return mixed(c.sendbuf, c.sendcounts, c.sdispls, c.sendtypes);
    default:
      return {};
  }
}

Side recv_side(const ferry_call& c, Fields fields) {
  switch (fields) {
    case Fields::block:
      return block(c.recvbuf, c.recvcount, c.recvtype);
    case Fields::ragged:
      return ragged(c.recvbuf, c.recvcounts, c.rdispls, c.recvtype);
    case Fields::mixed:
      return mixed(c.recvbuf, c.recvcounts, c.rdispls, c.recvtypes);
    case Fields::counted:
      return counted(c.recvbuf, c.recvcounts, c.recvtype);
    default:
      return {};
  }
}

int run(const ferry_call& given, ferry_request* request) {
  if (request != nullptr) *request = FERRY_REQUEST_NULL;
  Call call;
  call.function = function_name(given);
  call.comm = given.comm;
  call.quiet = (given.flags & FERRY_NO_ERROR_HANDLER) != 0;
  return guarded({call.function, call.comm, call.quiet}, [&] {
    const Entry& entry = entry_of(given);
    call.operation = entry.operation;
    call.form = form_of(given);
    call.root = given.root;
    call.send = send_side(given, entry.send);
    call.recv = recv_side(given, entry.recv);
    if (reduces(call.operation)) call.reduction = given.op;
    return run_call(call, request);
  });
}

// A program built against an earlier ferry.h has a shorter ferry_call.
constexpr std::size_t kFirstSize = offsetof(ferry_call, op);

} // namespace
} // namespace ferry::core

#define FERRY_STRIP(...) __VA_ARGS__

#define FERRY_FORM(symbol, form, operation, parameters, description, request)                 \
  int symbol(FERRY_STRIP parameters) {                                                        \
    return run_call(                                                                          \
        {#symbol, Operation::operation, Form::form, comm, FERRY_STRIP description}, request); \
  }

#define FERRY_COUNT MPI_Count
#define FERRY_DISPL MPI_Aint
#define FERRY_COLLECTIVE(Name, name, operation, parameters, arguments, description)             \
  FERRY_FORM(ferry_##name, blocking, operation, parameters, description, nullptr)               \
  FERRY_FORM(                                                                                   \
      ferry_i##name, nonblocking, operation, (FERRY_STRIP parameters, ferry_request * request), \
      description, request)                                                                     \
  FERRY_FORM(                                                                                   \
      ferry_##name##_init, persistent, operation,                                               \
      (FERRY_STRIP parameters, MPI_Info, ferry_request * request), description, request)

using namespace ferry::core;

extern "C" {

int ferry_collective(const ferry_call* call, ferry_request* request) {
  if (call == nullptr || (call->size != sizeof(ferry_call) && call->size != kFirstSize)) {
    return report(
        {"ferry_collective", MPI_COMM_NULL, false},
        {ErrorKind::argument, "the call is NULL or of another version of ferry.h",
         "set size to sizeof(struct ferry_call) and build against this version"});
  }
  ferry_call whole{};
  std::memcpy(&whole, call, call->size);
  return run(whole, request);
}

FERRY_COLLECTIVE(
    Barrier, barrier, barrier, (MPI_Comm comm), (comm), (0, Side{}, Side{}, MPI_OP_NULL))
#include "lib/api/collectives.def"

} // extern "C"
