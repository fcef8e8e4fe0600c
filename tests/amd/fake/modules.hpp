// SPDX-License-Identifier: MIT
#pragma once

#include "lib/amd/hip_modules.hpp"

namespace ferry::test {

// A modelled HIP that loads the code objects of the library and launches their kernels: by name, as
// code of the host, a thread for each workgroup or lane. Streams are FakeStreams.
[[nodiscard]] amd::HipModules fake_hip_modules();

} // namespace ferry::test
