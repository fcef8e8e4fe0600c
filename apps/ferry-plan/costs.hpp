// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "lib/schedule/simulate.hpp"

namespace ferry::plan {

// Measured here, within a tenth of a second: copies of blocks of that size in a cache, and a flag
// between two threads.
[[nodiscard]] core::StepCosts measure_costs(std::uint64_t block_bytes);

// "copy,byte,signal,flight,await" in nanoseconds. Throws std::invalid_argument.
[[nodiscard]] core::StepCosts parse_costs(const std::string& text);

} // namespace ferry::plan
