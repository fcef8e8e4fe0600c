// SPDX-License-Identifier: MIT
#include "lib/amd/kernel_plan.hpp"

#include <fmt/format.h>

#include <utility>

#include "device/put.hpp"
#include "lib/amd/patience.hpp"

namespace ferry::amd {

namespace {
// How long a kernel that was told to give up may take; far more than it needs.
constexpr double kStopSeconds = 10;
} // namespace

using core::ErrorKind;
using core::Failure;

KernelPlan::KernelPlan(const KernelDevices& devices, KernelParts parts)
    : devices_(devices), parts_(std::move(parts)) {}

// A kernel that still runs uses the memory of the plan: it is told to give up, and waited for.
KernelPlan::~KernelPlan() {
  if (progress() == core::Poll::ready) return;
  device::store_release(&parts_.report->stop, std::uint64_t{1});
  const auto look = [this] { return progress(); };
  (void)wait_patiently([this] { return missing(); }, kStopSeconds, look);
}

int KernelPlan::launch(void* stream) {
  void* const arguments =
      std::visit([](auto& args) { return static_cast<void*>(&args); }, parts_.arguments);
  return devices_.launch(parts_.kernel, parts_.shape, arguments, stream);
}

void KernelPlan::start() {
  if (!status_.ok()) return;
  if (running_) {
    status_ = {ErrorKind::request, "a start before the one before it was complete", {}};
    return;
  }
  const int error = launch(parts_.stream.get());
  if (error != 0) {
    status_ = {
        ErrorKind::other, fmt::format("hipModuleLaunchKernel fails with error {}", error), {}};
    return;
  }
  ++started_;
  running_ = true;
}

void KernelPlan::start_on_stream(void* stream) {
  const int error = launch(stream);
  if (error == 0) return;
  throw Failure(ErrorKind::other, fmt::format("hipModuleLaunchKernel fails with error {}", error));
}

// The report is complete when its status is there: pairs with the release of the kernel.
void KernelPlan::read_report() {
  const std::uint64_t found = device::load_acquire(&parts_.report->status);
  if (found == 0 || !status_.ok()) return;
  const device::KernelReport& report = *parts_.report;
  const std::uint64_t place = device::load_relaxed(&report.peer);
  const int rank = place < parts_.peers.size() ? parts_.peers[place] : -1;
  if (static_cast<device::PutStatus>(found) == device::PutStatus::timed_out) {
    status_ = {
        ErrorKind::timeout,
        fmt::format(
            "waited {} s: {}, start {}: the kernel has nothing from rank {}", parts_.patience,
            parts_.label, device::load_relaxed(&report.epoch), rank),
        "see whether that rank still makes the same calls, or raise FERRY_TIMEOUT"};
    return;
  }
  status_ = {
      ErrorKind::other,
      fmt::format("a kernel refuses the plan of rank {} (status {})", rank, found),
      {}};
}

core::Poll KernelPlan::progress() {
  read_report();
  if (!running_) return core::Poll::ready;
  const int state = devices_.query(parts_.stream.get());
  if (state == HipModules::kNotReady) return core::Poll::pending;
  running_ = false;
  read_report();
  if (state != 0 && status_.ok()) {
    status_ = {
        ErrorKind::other, fmt::format("the stream of a kernel fails with error {}", state), {}};
  }
  return core::Poll::ready;
}

std::string KernelPlan::missing() const {
  return fmt::format(
      "{}, start {}: the kernel {} has not ended", parts_.label, started_, parts_.shape.kernel);
}

} // namespace ferry::amd
