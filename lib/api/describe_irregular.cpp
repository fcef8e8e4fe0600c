// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "lib/api/describe_call.hpp"
#include "lib/api/type_layout.hpp"
#include "lib/base/error.hpp"

namespace ferry::core {
namespace {

[[noreturn]] void refuse_missing_arrays(const char* what) {
  throw Failure(
      ErrorKind::argument, fmt::format("the counts or displacements of {} are NULL", what),
      "pass arrays with one entry for each rank");
}

// Block `i` of a side whose blocks differ.
Block block_of(const Call& call, const Side& side, int i, const char* what) {
  const MPI_Count count = side.counts.given() ? side.counts[i] : side.count;
  const MPI_Datatype type = side.types != nullptr ? side.types[i] : side.type;
  Block block;
  if (count == 0) return block; // also of a null type
  block.layout = side_layout(call, side, count, type, what);
  if (side.arrays && !side.displs.given()) refuse_missing_arrays(what);
  if (side.types != nullptr) {
    block.displacement = side.displs[i];
  } else if (side.displs.given()) {
    block.displacement = side.displs[i] * block.layout.extent;
  } else {
    block.displacement = i * static_cast<std::int64_t>(count) * block.layout.extent;
  }
  return block;
}

std::vector<Block> blocks_of(const Call& call, const Side& side, int ranks, const char* what) {
  if (side.arrays && !side.counts.given()) refuse_missing_arrays(what);
  std::vector<Block> blocks;
  blocks.reserve(static_cast<std::size_t>(ranks));
  for (int i = 0; i < ranks; ++i) blocks.push_back(block_of(call, side, i, what));
  return blocks;
}

// The same block for everybody.
Block single_block(const Call& call, const Side& side, const char* what) {
  Block block;
  if (side.count > 0) block.layout = side_layout(call, side, side.count, side.type, what);
  return block;
}

class IrregularCall {
 public:
  IrregularCall(const Call& call, int rank, int ranks, CollectiveDesc& desc)
      : call_(call), desc_(desc), me_(static_cast<std::size_t>(rank)), ranks_(ranks) {
    blocks_.send.resize(static_cast<std::size_t>(ranks));
    blocks_.recv.resize(static_cast<std::size_t>(ranks));
  }

  void alltoall() {
    blocks_.recv = blocks_of(call_, call_.recv, ranks_, "recvbuf");
    desc_.in_place = in_place(call_.send);
    if (desc_.in_place) {
      send_from_recv();
      blocks_.send = blocks_.recv;
    } else {
      desc_.send = call_.send.buffer;
      blocks_.send = blocks_of(call_, call_.send, ranks_, "sendbuf");
    }
  }

  // In place the own block goes to the others from where it lies.
  void allgather() {
    blocks_.recv = blocks_of(call_, call_.recv, ranks_, "recvbuf");
    Block own;
    if (in_place(call_.send)) {
      send_from_recv();
      own = blocks_.recv[me_];
    } else {
      desc_.send = call_.send.buffer;
      own = single_block(call_, call_.send, "sendbuf");
    }
    for (Block& block : blocks_.send) block = own;
  }

  void gather() {
    const auto root = static_cast<std::size_t>(call_.root);
    const bool at_root = root == me_;
    if (at_root) {
      blocks_.recv = blocks_of(call_, call_.recv, ranks_, "recvbuf");
    }
    if (at_root && in_place(call_.send)) {
      desc_.own_block = false;
      return;
    }
    desc_.send = call_.send.buffer;
    blocks_.send[root] = single_block(call_, call_.send, "sendbuf");
  }

  void scatter() {
    const auto root = static_cast<std::size_t>(call_.root);
    const bool at_root = root == me_;
    if (at_root) {
      desc_.send = call_.send.buffer;
      blocks_.send = blocks_of(call_, call_.send, ranks_, "sendbuf");
    }
    if (at_root && in_place(call_.recv)) {
      desc_.own_block = false;
      desc_.recv = nullptr;
      return;
    }
    blocks_.recv[root] = single_block(call_, call_.recv, "recvbuf");
  }

  void finish() {
    const std::uint64_t out = blocks_.send[me_].layout.bytes();
    const std::uint64_t in = blocks_.recv[me_].layout.bytes();
    if (desc_.own_block && out != in) {
      throw Failure(
          ErrorKind::mismatch, fmt::format("sends {} bytes to itself but receives {}", out, in),
          "let send and receive counts and types have the same signature for the own rank");
    }
    desc_.irregular = std::make_shared<Irregular>(std::move(blocks_));
  }

 private:
  static bool in_place(const Side& side) { return side.buffer == MPI_IN_PLACE; }
  void send_from_recv() {
    desc_.send = desc_.recv;
    desc_.own_block = false;
  }

  const Call& call_;
  CollectiveDesc& desc_;
  std::size_t me_;
  int ranks_;
  Irregular blocks_;
};

} // namespace

bool is_irregular(const Call& call) {
  const bool rooted = call.operation == Operation::gather || call.operation == Operation::scatter;
  return rooted || call.recv.arrays;
}

void describe_irregular(const Call& call, int rank, int ranks, CollectiveDesc& desc) {
  IrregularCall irregular(call, rank, ranks, desc);
  switch (call.operation) {
    case Operation::alltoall:
      irregular.alltoall();
      break;
    case Operation::allgather:
      irregular.allgather();
      break;
    case Operation::gather:
      irregular.gather();
      break;
    case Operation::scatter:
      irregular.scatter();
      break;
    default:
      throw Failure(
          ErrorKind::argument, "counts for each rank in a collective that has none",
          "use the v form of a collective that has one");
  }
  irregular.finish();
}

} // namespace ferry::core
