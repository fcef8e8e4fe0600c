// SPDX-License-Identifier: MIT
#include "lib/amd/stream_starts.hpp"

#include <fmt/format.h>

#include "device/platform.hpp"
#include "lib/amd/patience.hpp"

namespace ferry::amd {
namespace {

constexpr std::uint32_t kGfx90a = 90010; // as the kernel has it
constexpr double kEndSeconds = 10; // far more than a kernel needs that is told to give up

KernelFunction start_kernel(KernelDevices& devices, const Gpu& gpu) {
  const std::string refusal = devices.refuses(gpu);
  if (!refusal.empty()) throw core::Failure(core::ErrorKind::other, refusal);
  return devices.function(gpu, kStartKernel);
}

} // namespace

StreamStarts::StreamStarts(KernelDevices& devices, const Gpu& gpu, double seconds)
    : devices_(devices),
      kernel_(start_kernel(devices, gpu)),
      report_(std::static_pointer_cast<StartReport>(devices.host_memory(sizeof(StartReport)))),
      patience_(ticks_of(seconds, gpu.gfx == kGfx90a)) {}

void StreamStarts::launch(const device::StartHandle& handle, void* stream) {
  const KernelShape one_lane{kStartKernel, 1, 1, 1};
  StartArgs args;
  args.handle = handle;
  args.launch = launches_ + 1;
  args.report = report_.get();
  args.patience = patience_;
  const int error = devices_.launch(kernel_, one_lane, &args, stream);
  if (error != 0) {
    throw core::Failure(
        core::ErrorKind::other, fmt::format("hipModuleLaunchKernel fails with error {}", error));
  }
  ++launches_;
}

bool StreamStarts::gave_up() const {
  return device::load_acquire(&report_->waits.status) != 0;
}

bool StreamStarts::end() {
  // Pairs with the release behind the last look that a kernel takes at the plan.
  const auto look = [this] {
    const bool ended = device::load_acquire(&report_->ended) >= launches_;
    return ended ? core::Poll::ready : core::Poll::pending;
  };
  if (look() == core::Poll::ready) return true;
  device::store_release(&report_->waits.stop, std::uint64_t{1});
  return wait_patiently([] { return std::string("a kernel"); }, kEndSeconds, look).ok();
}

} // namespace ferry::amd
