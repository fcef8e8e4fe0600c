// SPDX-License-Identifier: MIT
// What the library uses of HIP but for kernels, on the modelled runtime.
#include <atomic>
#include <cstring>

#include "tests/amd/fake/rocr.hpp"

namespace ferry::test {
namespace {

std::atomic<std::size_t> host_functions_on_streams{0};

} // namespace

struct HipFunctions {
  static int pointer_attribute(void* answer, int attribute, void* pointer) {
    const auto record = FakeRocr::of_process().record_of(pointer);
    if (attribute != amd::HipApi::kBufferId || !record || record->id == 0) return 1;
    std::memcpy(answer, &record->id, sizeof record->id);
    return 0;
  }
  static int address_range(void** base, std::size_t* bytes, void* pointer) {
    const auto record = FakeRocr::of_process().record_of(pointer);
    if (!record) return 1;
    *base = record->base;
    *bytes = record->bytes;
    return 0;
  }
  static int is_capturing(void* stream, int* status) {
    *status = static_cast<FakeStream*>(stream)->capturing() ? 1 : 0;
    return 0;
  }
  static int launch_host_function(void* stream, void (*function)(void*), void* data) {
    ++host_functions_on_streams;
    static_cast<FakeStream*>(stream)->push([=] { function(data); });
    return 0;
  }
};

std::size_t FakeRocr::host_functions() {
  return host_functions_on_streams;
}

amd::HipApi FakeRocr::hip() {
  amd::HipApi api;
  api.pointer_attribute = HipFunctions::pointer_attribute;
  api.launch_host_function = HipFunctions::launch_host_function;
  api.is_capturing = HipFunctions::is_capturing;
  api.address_range = HipFunctions::address_range;
  return api;
}

} // namespace ferry::test
