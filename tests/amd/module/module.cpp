// SPDX-License-Identifier: MIT
// What libferry-amd.so is on a machine with modelled GPUs.
#include "lib/amd/backend.hpp"
#include "tests/amd/local_rig.hpp"

namespace {

struct Machine {
  ferry::test::LocalRig rig{"MI300X"};
  ferry::amd::AmdBackend backend{
      rig.kernel(), rig.rocr().hsa(), ferry::test::FakeRocr::hip(),
      ferry::amd::options_of_environment()};
};

} // namespace

extern "C" __attribute__((visibility("default"))) ferry::core::DeviceBackend* ferry_device_backend(
    const char** /*why*/) {
  static Machine machine;
  return &machine.backend;
}
