// SPDX-License-Identifier: MIT
// libferry-amd.so: loaded when a program hands over memory that is not the host's.
#include <string>

#include "lib/amd/backend.hpp"
#include "lib/base/error.hpp"

namespace {

std::string& reason() {
  static std::string text;
  return text;
}

// Never destroyed: programs may free buffers and plans while the process ends.
ferry::amd::AmdBackend* make_backend() {
  ferry::amd::HsaApi hsa;
  if (!ferry::amd::load_hsa(hsa, reason())) return nullptr;
  try {
    return new ferry::amd::AmdBackend(
        ferry::amd::real_system(), hsa, ferry::amd::find_hip(),
        ferry::amd::options_of_environment());
  } catch (const ferry::core::Failure& failure) {
    reason() = failure.status().cause;
    if (!failure.status().remedy.empty()) reason() += "; " + failure.status().remedy;
    return nullptr;
  }
}

} // namespace

extern "C" __attribute__((visibility("default"))) ferry::core::DeviceBackend* ferry_device_backend(
    const char** why) {
  static ferry::amd::AmdBackend* const backend = make_backend();
  if (backend == nullptr && why != nullptr) *why = reason().c_str();
  return backend;
}
