// SPDX-License-Identifier: MIT
#pragma once

#include "tests/amd/rig.hpp"

namespace ferry::test {

// The module for AMD GPUs is the modelled one until the process ends.
[[nodiscard]] Rig& rig();

} // namespace ferry::test
