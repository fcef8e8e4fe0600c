// SPDX-License-Identifier: MIT
// What libferry-amd.so is on a machine with modelled GPUs.
#include "tests/amd/module/module.hpp"

#include <cstdlib>

#include "tests/amd/fake/modules.hpp"

namespace ferry::test {

int gpus_of_hip() {
  const char* const gpus = std::getenv("TEST_GPUS");
  return gpus != nullptr ? std::atoi(gpus) : 0;
}

// With HIP, times are those of the model, so that they can be told apart: kernels are slow.
Machine& machine() {
  static Machine machine = [] {
    using std::chrono::milliseconds;
    amd::HipApi hip = FakeRocr::hip();
    if (gpus_of_hip() == 0) return Machine(hip, milliseconds(0));
    hip.modules = fake_hip_modules();
    set_kernel_time(milliseconds(20));
    return Machine(hip, milliseconds(5));
  }();
  return machine;
}

} // namespace ferry::test

extern "C" __attribute__((visibility("default"))) ferry::core::DeviceBackend* ferry_device_backend(
    const char** /*why*/) {
  return &ferry::test::machine().backend;
}
