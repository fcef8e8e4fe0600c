// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "lib/amd/devices.hpp"

namespace ferry::amd {

// Tries each layer on this machine, from the topology to copies between every pair of GPUs that
// this process sees. Lines "pass|fail|skip LAYER: FIGURE[; WHAT TO DO]". Under a minute: what there
// is no time for is skipped, and says so.
[[nodiscard]] std::string self_test(Devices& devices);

} // namespace ferry::amd
