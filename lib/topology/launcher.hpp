// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace ferry::core {

// Empty, or why a world of `world_size` ranks is not what the launcher says it started: MPI
// programs under a launcher that speaks another protocol each become rank 0 of 1, without an error.
[[nodiscard]] std::string launcher_complaint(int world_size);

} // namespace ferry::core
