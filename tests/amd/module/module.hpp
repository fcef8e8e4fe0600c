// SPDX-License-Identifier: MIT
#pragma once

// The modelled machine of a process that loads the modelled module, which HIP of the same file
// shares with it.

#include <chrono>

#include "lib/amd/backend.hpp"
#include "tests/amd/local_rig.hpp"

namespace ferry::test {

struct Machine {
  Machine(const amd::HipApi& hip, std::chrono::microseconds copy_time)
      : rig("MI300X", {}, {}, copy_time),
        backend(rig.kernel(), rig.rocr().hsa(), hip, amd::options_of_environment()) {}
  LocalRig rig;
  amd::AmdBackend backend;
};

[[nodiscard]] Machine& machine();
// GPUs that HIP shows, by TEST_GPUS; 0: the process has no HIP.
[[nodiscard]] int gpus_of_hip();

} // namespace ferry::test
