// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>

#include "lib/amd/hip_modules.hpp"

namespace ferry::test {

// A modelled HIP that loads the code objects of the library and launches their kernels: by name, as
// code of the host, a thread for each workgroup or lane. Streams are FakeStreams.
[[nodiscard]] amd::HipModules fake_hip_modules();

// From now on, in this process.
enum class KernelFault {
  none,
  hangs, // until it is told to give up
  wrong_byte, // in the own block
};
void set_kernel_fault(KernelFault fault);
void set_kernel_time(std::chrono::microseconds time); // that each takes at least
[[nodiscard]] std::size_t kernel_launches();

} // namespace ferry::test
