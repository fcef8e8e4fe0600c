// SPDX-License-Identifier: MIT
#include "lib/api/describe_call.hpp"

#include <fmt/format.h>
#include <limits>

#include "lib/base/error.hpp"

namespace ferry::core {
namespace {

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

void check_buffer(const void* buffer, const Layout& layout, const char* what) {
  if (buffer == nullptr && layout.bytes() > 0) {
    throw Failure(
        ErrorKind::buffer, fmt::format("{} is NULL, but its count is {}", what, layout.count),
        "pass the buffer, or 0 as count on all ranks");
  }
}

// Blocks of all ranks together must have an address.
void check_total(const Layout& layout, int ranks, const char* what) {
  const auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool overflow =
      layout.element_bytes > 0 &&
      layout.count > limit / layout.element_bytes / static_cast<std::uint64_t>(ranks);
  if (overflow) {
    throw Failure(
        ErrorKind::count,
        fmt::format(
            "{} of {} elements of {} bytes does not fit into memory", what, layout.count,
            layout.element_bytes),
        "check the count");
  }
}

void check_in_place(const ferry_call& call) {
  if (call.recvbuf != MPI_IN_PLACE) return;
  throw Failure(
      ErrorKind::buffer, "MPI_IN_PLACE as receive buffer", "pass MPI_IN_PLACE as the send buffer");
}

void check_block_match(const CollectiveDesc& desc) {
  if (desc.in_place || desc.send_layout.bytes() == desc.recv_layout.bytes()) return;
  throw Failure(
      ErrorKind::mismatch,
      fmt::format(
          "sends blocks of {} bytes but receives blocks of {} bytes", desc.send_layout.bytes(),
          desc.recv_layout.bytes()),
      "let sendcount x sendtype and recvcount x recvtype have the same signature");
}

void check_root(const ferry_call& call, int ranks) {
  if (call.root >= 0 && call.root < ranks) return;
  throw Failure(
      ErrorKind::root, fmt::format("root {} is not a rank of this communicator", call.root),
      fmt::format("use 0 to {}", ranks - 1));
}

// One pair of buffers must not be the same memory: blocks would be overwritten before they are
// sent.
void check_alias(const CollectiveDesc& desc) {
  if (desc.in_place || desc.block_bytes() == 0 || desc.send != desc.recv) return;
  throw Failure(
      ErrorKind::buffer, "send and receive buffer are the same",
      "pass MPI_IN_PLACE as send buffer");
}

} // namespace

CollectiveDesc describe_call(const ferry_call& call, int ranks) {
  CollectiveDesc desc;
  desc.operation = operation_of(call);
  desc.form = form_of(call);
  const bool broadcast = desc.operation == Operation::broadcast;
  desc.recv = call.recvbuf;
  check_in_place(call);
  desc.recv_layout =
      layout_of(call.comm, call.recvcount, call.recvtype, broadcast ? "buffer" : "recvbuf");
  check_buffer(desc.recv, desc.recv_layout, broadcast ? "buffer" : "recvbuf");
  check_total(desc.recv_layout, ranks, broadcast ? "buffer" : "recvbuf");
  if (broadcast) {
    check_root(call, ranks);
    desc.root = call.root;
    desc.send = desc.recv;
    desc.send_layout = desc.recv_layout;
    return desc;
  }
  desc.in_place = call.sendbuf == MPI_IN_PLACE;
  desc.send = desc.in_place ? desc.recv : call.sendbuf;
  desc.send_layout = desc.recv_layout;
  if (desc.in_place) return desc; // send count and type are ignored
  desc.send_layout = layout_of(call.comm, call.sendcount, call.sendtype, "sendbuf");
  check_buffer(desc.send, desc.send_layout, "sendbuf");
  check_block_match(desc);
  check_alias(desc);
  return desc;
}

} // namespace ferry::core
