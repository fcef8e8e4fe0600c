// SPDX-License-Identifier: MIT
#include "lib/api/describe_call.hpp"

#include <fmt/format.h>
#include <limits>

#include "lib/api/type_layout.hpp"
#include "lib/base/error.hpp"

namespace ferry::core {
namespace {

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

void check_in_place(const Call& call) {
  const bool at_root = call.operation == Operation::scatter;
  if (call.recv.buffer != MPI_IN_PLACE || at_root) return;
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

bool has_root(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::gather ||
         operation == Operation::scatter || operation == Operation::reduce;
}

void check_root(const Call& call, int ranks) {
  if (call.root >= 0 && call.root < ranks) return;
  throw Failure(
      ErrorKind::root, fmt::format("root {} is not a rank of this communicator", call.root),
      fmt::format("use 0 to {}", ranks - 1));
}

// One pair of buffers must not be the same memory: blocks would be overwritten before they are
// sent.
void check_alias(const CollectiveDesc& desc) {
  if (desc.in_place || desc.block_bytes() == 0 || desc.send != desc.recv) return;
  if (!desc.send_plain() || !desc.recv_plain()) return; // may lie between each other
  throw Failure(
      ErrorKind::buffer, "send and receive buffer are the same",
      "pass MPI_IN_PLACE as send buffer");
}

void describe_regular(const Call& call, int ranks, CollectiveDesc& desc) {
  const bool broadcast = desc.operation == Operation::broadcast;
  const char* what = broadcast ? "buffer" : "recvbuf";
  desc.recv_layout = side_layout(call, call.recv, call.recv.count, call.recv.type, what);
  check_total(desc.recv_layout, ranks, what);
  desc.in_place = !broadcast && call.send.buffer == MPI_IN_PLACE;
  desc.own_block = !broadcast && !desc.in_place;
  desc.send = desc.own_block ? call.send.buffer : desc.recv;
  desc.send_layout = desc.recv_layout;
  if (!desc.own_block) return; // send count and type are ignored
  desc.send_layout = side_layout(call, call.send, call.send.count, call.send.type, "sendbuf");
  check_block_match(desc);
  check_alias(desc);
}

} // namespace

Layout side_layout(
    const Call& call, const Side& side, MPI_Count count, MPI_Datatype type, const char* what) {
  Layout layout = type_layout(call.comm, count, type, what);
  // MPI_BOTTOM is a null pointer: fine where the type holds absolute addresses.
  const bool absolute = !layout.contiguous() || layout.offset != 0;
  if (side.buffer == nullptr && layout.bytes() > 0 && !absolute) {
    throw Failure(
        ErrorKind::buffer, fmt::format("{} is NULL, but its count is {}", what, layout.count),
        "pass the buffer, or 0 as count on all ranks");
  }
  return layout;
}

CollectiveDesc describe_call(const Call& call, int rank, int ranks) {
  CollectiveDesc desc;
  desc.operation = call.operation;
  desc.form = call.form;
  if (call.operation == Operation::barrier) {
    desc.own_block = false;
    return desc;
  }
  check_in_place(call);
  if (has_root(call.operation)) {
    check_root(call, ranks);
    desc.root = call.root;
  }
  desc.recv = const_cast<void*>(call.recv.buffer);
  if (reduces(call.operation)) {
    describe_reduction(call, rank, ranks, desc);
  } else if (is_irregular(call)) {
    describe_irregular(call, rank, ranks, desc);
  } else {
    describe_regular(call, ranks, desc);
  }
  return desc;
}

} // namespace ferry::core
