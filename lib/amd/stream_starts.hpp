// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "device/start.hpp"
#include "lib/amd/kernel_device.hpp"
#include "lib/amd/kernels/kernels.hpp"
#include "lib/base/error.hpp"

namespace ferry::amd {

// Starts of one plan on streams of the program, made by a kernel of one lane that waits there for
// the end: no thread of the host is in the path.
class StreamStarts {
 public:
  // Throws Failure, also where no kernels can run.
  StreamStarts(KernelDevices& devices, const Gpu& gpu, double seconds);
  StreamStarts(const StreamStarts&) = delete;
  StreamStarts& operator=(const StreamStarts&) = delete;
  ~StreamStarts() = default;

  // The first start of the handle. Throws Failure.
  void launch(const device::StartHandle& handle, void* stream);
  // Has a kernel given up?
  [[nodiscard]] bool gave_up() const;
  // Tells kernels to give up, and waits for them; false: one has not ended, or not begun.
  [[nodiscard]] bool end();

 private:
  KernelDevices& devices_;
  KernelFunction kernel_;
  std::shared_ptr<StartReport> report_;
  std::uint64_t patience_;
  std::uint64_t launches_ = 0;
};

} // namespace ferry::amd
