// SPDX-License-Identifier: MIT
// What programs call of HIP, on the modelled machine: the module's file is this library, too, under
// its name.
#include <cstdio>

#include "tests/amd/module/module.hpp"

namespace {

thread_local int current = 0;

} // namespace

#define FERRY_HIP extern "C" __attribute__((visibility("default")))

FERRY_HIP int hipGetDeviceCount(int* count) {
  constexpr int kNoDevice = 100;
  *count = ferry::test::gpus_of_hip();
  return *count > 0 ? 0 : kNoDevice;
}
FERRY_HIP int hipSetDevice(int device) {
  constexpr int kInvalidDevice = 101;
  if (device < 0 || device >= ferry::test::gpus_of_hip()) return kInvalidDevice;
  current = device;
  return 0;
}
FERRY_HIP int hipMalloc(void** memory, std::size_t bytes) {
  constexpr int kOutOfMemory = 2;
  *memory = ferry::test::machine().rig.rocr().hip_malloc(ferry::test::kCpuNodes + current, bytes);
  return *memory != nullptr ? 0 : kOutOfMemory;
}
FERRY_HIP int hipFree(void* memory) {
  ferry::test::machine().rig.rocr().hip_free(memory);
  return 0;
}
FERRY_HIP int hipDeviceGetName(char* name, int length, int /*device*/) {
  std::snprintf(name, static_cast<std::size_t>(length), "modelled MI300X");
  return 0;
}
FERRY_HIP int hipRuntimeGetVersion(int* version) {
  *version = 60000000;
  return 0;
}
