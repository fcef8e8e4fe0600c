// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/memory/layout.hpp"

namespace ferry::core {

enum class Operation : std::uint8_t {
  alltoall,
  allgather,
  broadcast,
  gather,
  scatter,
  barrier,
  reduce_scatter,
  allreduce,
  reduce
};
enum class Form : std::uint8_t { blocking, nonblocking, persistent };

[[nodiscard]] const char* name_of(Operation operation);

// One block of one side: it begins `displacement` bytes behind the buffer's address.
struct Block {
  std::int64_t displacement = 0;
  Layout layout;
};

// The blocks of a call in which they differ, or in which not every pair of ranks exchanges one: v
// and w forms, gather and scatter. One entry a rank on each side.
struct Irregular {
  std::vector<Block> send;
  std::vector<Block> recv;
};

// What a reduction does to elements, and how many of them each rank gets.
struct Reduction {
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL; // predefined, without gaps
  std::uint64_t element_bytes = 0;
  std::vector<std::uint64_t> counts; // elements of each rank's part of the result
};

// One call, in whatever form it was made. `send` is the source of outgoing data on this rank: the
// receive buffer under in_place, the buffer of the root for a broadcast.
struct CollectiveDesc {
  Operation operation = Operation::alltoall;
  Form form = Form::blocking;
  bool in_place = false; // on all ranks alike: alltoall and allgather
  bool own_block = true; // the own block is copied from send to recv
  bool of_reduction = false; // a stage of a reduction, not a call of the user
  int root = 0;
  const void* send = nullptr;
  void* recv = nullptr;
  Layout send_layout; // of one block, unless irregular
  Layout recv_layout;
  std::shared_ptr<const Irregular> irregular;
  std::shared_ptr<const Reduction> reduction;

  // Bytes of one block: what goes to each peer (alltoall), what each rank contributes (allgather),
  // the message (broadcast). Equal on all ranks by MPI's rules.
  [[nodiscard]] std::uint64_t block_bytes() const { return recv_layout.bytes(); }

  // Layout of the block for (from) a rank, and its displacement.
  [[nodiscard]] const Layout& send_block(int rank) const;
  [[nodiscard]] const Layout& recv_block(int rank) const;
  [[nodiscard]] std::int64_t send_displacement(int rank) const;
  [[nodiscard]] std::int64_t recv_displacement(int rank) const;
  // The address that a block's layout refers to.
  [[nodiscard]] const std::byte* send_base(int rank) const {
    return static_cast<const std::byte*>(send) + send_displacement(rank);
  }
  [[nodiscard]] std::byte* recv_base(int rank) const {
    return static_cast<std::byte*>(recv) + recv_displacement(rank);
  }
  // All blocks of a side lie without gaps one behind the other, the first at send_start().
  [[nodiscard]] bool send_plain() const;
  [[nodiscard]] bool recv_plain() const;
  [[nodiscard]] const std::byte* send_start() const {
    return static_cast<const std::byte*>(send) + send_layout.offset;
  }
  [[nodiscard]] std::byte* recv_start() const {
    return static_cast<std::byte*>(recv) + recv_layout.offset;
  }
  // From send to recv on this rank, when own_block says so.
  void copy_own_block(int rank) const;
};

// Pairs of ranks exchange blocks of which only they know the size: irregular alltoall, gather,
// scatter, and allgather with different blocks.
[[nodiscard]] inline bool is_exchange(const CollectiveDesc& desc) {
  return desc.irregular != nullptr;
}

} // namespace ferry::core
