// SPDX-License-Identifier: MIT
// The only symbol of libferry-nvidia.so.
#include <exception>
#include <memory>
#include <string>

#include "lib/nvidia/backend.hpp"

extern "C" __attribute__((visibility("default"))) ferry::core::DeviceBackend* ferry_device_backend(
    const char** why) {
  static std::string reason;
  // Lives as long as the process: plans and cached mappings may be used until its very end.
  static ferry::nvidia::Backend* const backend = []() -> ferry::nvidia::Backend* {
    try {
      return std::make_unique<ferry::nvidia::Backend>().release();
    } catch (const std::exception& error) {
      reason = error.what();
      return nullptr;
    }
  }();
  if (backend == nullptr && why != nullptr) *why = reason.c_str();
  return backend;
}
