// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace ferry::core {

// Sizes at which plans change, as measured on a machine. Planners take their limits from here.
struct Table {
  const char* name;
  std::uint64_t slot_bytes; // largest block that rides with its flag
  std::uint64_t direct_bytes; // larger ones go straight, where all ranks map all receive buffers
  std::uint64_t slot_budget; // bytes of slots that one rank spends on a communicator
  int slot_depth; // epochs that a writer may run ahead of its readers
};

// 2 cores of an Intel Xeon (48 KiB L1d, 2 MiB L2, virtual machine), MPICH 4.0.2, November 2026.
// Persistent AlltoAll of 2 ranks: slots against one direct copy 0.31 / 0.33 us at 128 bytes, 0.37 /
// 0.34 at 256, 0.47 / 0.35 at 512, 0.9 / 0.37 at 2048, spread 10 %. Slots against private memory
// cross between 2 and 8 KiB.
inline constexpr Table kBuiltinTable{"built-in table", 4064, 256, 128 * 1024, 8};

} // namespace ferry::core
