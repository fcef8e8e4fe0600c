// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace ferry::core {

// Sizes at which plans change, as measured on a machine. Planners take their limits from here.
struct Table {
  const char* name;
  std::uint64_t slot_bytes; // largest block that rides with its flag
  std::uint64_t slot_budget; // bytes of slots that one rank spends on a communicator
  int slot_depth; // epochs that a writer may run ahead of its readers
};

// Safe everywhere: 2 cores of an AMD EPYC (Zen 5 class), MPICH 4.0.2, November 2026. Slots against
// one direct copy cross between 2 and 8 KiB there, within the spread of the measurement.
inline constexpr Table kBuiltinTable{"built-in table", 4064, 128 * 1024, 8};

} // namespace ferry::core
