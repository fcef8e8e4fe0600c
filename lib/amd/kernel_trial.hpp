// SPDX-License-Identifier: MIT
#pragma once

#include "lib/amd/kernel_setup.hpp"
#include "lib/base/error.hpp"

namespace ferry::amd {

// Collective. Before a kernel runs between these GPUs for the first time it moves stamped blocks
// within a limit of time, and every rank looks at what came. Fine when all is right on all ranks,
// otherwise why not, alike on all. The verdict holds as long as the process lives.
[[nodiscard]] core::Status try_kernel(const KernelSetUpInput& input);

} // namespace ferry::amd
