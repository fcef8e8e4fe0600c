// SPDX-License-Identifier: MIT
#include "lib/api/describe_call.hpp"

#include <fmt/format.h>
#include <limits>

#include "lib/api/flatten.hpp"
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

// A layout without gaps, of a predefined type.
struct PlainLayout {
  std::uint64_t count;
  std::uint64_t element_bytes;
  std::int64_t extent;
};

// The regular call of predefined types that a thread described last. Such types never change, so
// the same call with other buffers has the same description but for them. A plain word of the
// thread, since it is touched by every call.
struct LastCall {
  int ranks; // 0: none
  int root;
  Operation operation;
  Form form;
  bool in_place;
  bool own_block;
  MPI_Datatype send_type;
  MPI_Datatype recv_type;
  MPI_Count send_count;
  MPI_Count recv_count;
  PlainLayout send;
  PlainLayout recv;
};
__attribute__((tls_model("initial-exec"))) thread_local LastCall last_call;

bool repeats_last(const Call& call, int ranks) {
  const LastCall& last = last_call;
  const Side& send = call.send;
  const Side& recv = call.recv;
  return last.ranks == ranks && last.operation == call.operation && last.form == call.form &&
         last.root == call.root && last.in_place == (send.buffer == MPI_IN_PLACE) &&
         last.recv_count == recv.count && last.recv_type == recv.type && !recv.arrays &&
         last.send_count == send.count && last.send_type == send.type && !send.arrays &&
         recv.buffer != nullptr && recv.buffer != MPI_IN_PLACE &&
         (!last.own_block || (send.buffer != nullptr && send.buffer != recv.buffer));
}

PlainLayout plain(const Layout& layout) {
  return {layout.count, layout.element_bytes, layout.extent};
}

void set_layout(Layout& layout, const PlainLayout& plain) {
  layout.count = plain.count;
  layout.element_bytes = plain.element_bytes;
  layout.extent = plain.extent;
}

void describe_again(const Call& call, CollectiveDesc& desc) {
  const LastCall& last = last_call;
  desc.operation = last.operation;
  desc.form = last.form;
  desc.root = last.root;
  desc.in_place = last.in_place;
  desc.own_block = last.own_block;
  desc.recv = const_cast<void*>(call.recv.buffer);
  desc.send = last.own_block ? call.send.buffer : desc.recv;
  set_layout(desc.send_layout, last.send);
  set_layout(desc.recv_layout, last.recv);
}

void remember_call(const Call& call, int ranks, const CollectiveDesc& desc) {
  const auto plain_type = [](MPI_Datatype type, const Layout& layout) {
    return is_predefined(type) && layout.contiguous() && layout.offset == 0;
  };
  last_call.ranks = 0;
  if (call.root != desc.root) return; // of an operation without one
  if (!plain_type(call.recv.type, desc.recv_layout)) return;
  if (desc.own_block && !plain_type(call.send.type, desc.send_layout)) return;
  last_call = {ranks,           call.root,       desc.operation,          desc.form,
               desc.in_place,   desc.own_block,  call.send.type,          call.recv.type,
               call.send.count, call.recv.count, plain(desc.send_layout), plain(desc.recv_layout)};
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

void describe_call(const Call& call, int rank, int ranks, CollectiveDesc& desc) {
  if (repeats_last(call, ranks)) {
    describe_again(call, desc);
    return;
  }
  desc.operation = call.operation;
  desc.form = call.form;
  if (call.operation == Operation::barrier) {
    desc.own_block = false;
    return;
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
    remember_call(call, ranks, desc);
  }
}

} // namespace ferry::core
