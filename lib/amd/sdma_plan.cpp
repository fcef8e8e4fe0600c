// SPDX-License-Identifier: MIT
#include "lib/amd/sdma_plan.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "device/platform.hpp"
#include "lib/amd/patience.hpp"
#include "lib/config/config.hpp"

namespace ferry::amd {

SdmaPlan::SdmaPlan(const Runtime& runtime, SdmaParts parts)
    : runtime_(runtime), parts_(std::move(parts)) {}

// Epochs that were programmed and never started stay in their rings: such queues end with the plan.
SdmaPlan::~SdmaPlan() {
  if (done() >= armed_) return;
  for (const ArmedRing& ring : parts_.rings) ring.queue().give_up();
}

bool SdmaPlan::arm_next() {
  const auto room = [](const ArmedRing& ring) { return ring.room(); };
  if (!std::all_of(parts_.rings.begin(), parts_.rings.end(), room)) return false;
  ++armed_;
  for (ArmedRing& ring : parts_.rings) ring.arm(armed_);
  return true;
}

std::uint64_t SdmaPlan::arm(std::uint64_t epochs) {
  std::uint64_t count = 0;
  for (; count < epochs && arm_next();) ++count;
  return count;
}

std::uint64_t SdmaPlan::started() const {
  return device::load_acquire(parts_.control.trigger()) - parts_.first;
}

// Pairs with the fences behind the last packet of an epoch. Where the low half wraps the high one
// is there before it: a number beyond all that was armed, of an epoch that is complete.
std::uint64_t SdmaPlan::done() const {
  const std::uint64_t told = device::load_acquire(parts_.control.done());
  return told > armed_ ? told >> 32 << 32 : told;
}

void SdmaPlan::start() {
  if (!status_.ok()) return;
  if (armed_ == started() && !arm_next()) {
    fail({core::ErrorKind::request, "a start before the one before it was complete", {}});
    return;
  }
  // The release makes the buffers visible to the engines, whose polls come after it.
  device::fetch_add(parts_.control.trigger(), std::uint64_t{1});
}

core::Poll SdmaPlan::progress() {
  if (!status_.ok()) return core::Poll::ready;
  for (const ArmedRing& ring : parts_.rings) {
    const core::Status status = ring.queue().progress();
    if (!status.ok()) {
      fail(status);
      return core::Poll::ready;
    }
  }
  return done() >= started() ? core::Poll::ready : core::Poll::pending;
}

void SdmaPlan::fail(const core::Status& status) {
  status_ = status;
  for (const ArmedRing& ring : parts_.rings) ring.queue().give_up();
}

// Also in a graph, which replays the call and not its outcome: what changes from start to start is
// read when it runs.
void SdmaPlan::start_on_stream(void* stream) {
  runtime_.call_on_stream(stream, &SdmaPlan::run_on_stream, this);
}

void SdmaPlan::run_on_stream(void* self) {
  auto& plan = *static_cast<SdmaPlan*>(self);
  plan.start();
  const auto what = [&plan] { return plan.missing(); };
  const auto look = [&plan] { return plan.progress(); };
  const core::Status status = wait_patiently(what, core::config().timeout, look);
  if (!status.ok()) plan.fail(status);
}

std::string SdmaPlan::missing() const {
  for (const ArmedRing& ring : parts_.rings) {
    const SdmaQueue& queue = ring.queue();
    if (queue.drained()) continue;
    return fmt::format(
        "{}, start {}: {} to rank {} has consumed {} of {} bytes of packets and stands at {}",
        parts_.label, started(), queue.name(), ring.peer(), queue.consumed(), queue.written(),
        ring.next_packet());
  }
  return fmt::format("{}, start {}: about to finish", parts_.label, started());
}

} // namespace ferry::amd
