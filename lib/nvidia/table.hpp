// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include "lib/schedule/collective.hpp"

namespace ferry::nvidia {

enum class Path : std::uint8_t {
  words, // a kernel: data with flags through slots, in words
  lines, // the same, in lines
  push, // a kernel: wide stores into the peers' buffers
  engines, // copy engines, and a kernel for what stays here and for a part beside them
};

// How blocks up to a size go. Larger ones go like the last row of their operation, and operations
// without rows like alltoall.
struct Row {
  core::Operation operation;
  std::uint64_t up_to; // bytes of a block
  Path path;
  int push_blocks; // workgroups that store into peers' memory
  int own_blocks; // workgroups that copy what stays; 0: those that push, or the runtime, do it
  int kernel_percent; // engines: of each block, what the kernel pushes
  int lanes; // engines: copies of a block side by side
};

inline constexpr int kMaxLanes = 4;

// Where the rows come from, for explain() and ferry-info.
[[nodiscard]] const char* table_source();
[[nodiscard]] std::span<const Row> table();
[[nodiscard]] const Row& choose(
    std::span<const Row> rows, core::Operation operation, std::uint64_t block_bytes);

} // namespace ferry::nvidia
