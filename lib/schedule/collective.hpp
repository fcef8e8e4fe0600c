// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstring>

namespace ferry::core {

enum class Operation : std::uint8_t { alltoall, allgather, broadcast };
enum class Form : std::uint8_t { blocking, nonblocking, persistent };

[[nodiscard]] constexpr const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::alltoall:
      return "alltoall";
    case Operation::allgather:
      return "allgather";
    case Operation::broadcast:
      return "broadcast";
  }
  return "?";
}

// Where the bytes of `count` elements lie, relative to a buffer's start. Only contiguous layouts
// are planned today; gaps are refused where the description is made.
struct Layout {
  std::uint64_t count = 0; // elements
  std::uint64_t element_bytes = 0; // data bytes of one element
  std::int64_t extent = 0; // bytes from one element to the next
  bool contiguous = true;
  [[nodiscard]] std::uint64_t bytes() const { return count * element_bytes; }
};

// One call, in whatever form it was made. `send` is the source of outgoing data on this rank: the
// receive buffer under in_place, the buffer of the root for a broadcast.
struct CollectiveDesc {
  Operation operation = Operation::alltoall;
  Form form = Form::blocking;
  bool in_place = false;
  int root = 0;
  const void* send = nullptr;
  void* recv = nullptr;
  Layout send_layout; // of one block
  Layout recv_layout; // of one block
  // Bytes of one block: what goes to each peer (alltoall), what each rank contributes (allgather),
  // the message (broadcast). Equal on all ranks by MPI's rules.
  [[nodiscard]] std::uint64_t block_bytes() const { return recv_layout.bytes(); }
  // All there is to do on a communicator of one rank.
  void copy_own_block() const {
    const bool copies = !in_place && operation != Operation::broadcast;
    if (copies && block_bytes() > 0) std::memmove(recv, send, block_bytes());
  }
};

} // namespace ferry::core
