// SPDX-License-Identifier: MIT
#include "lib/amd/sdma_plan.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <utility>

#include "device/platform.hpp"
#include "lib/amd/patience.hpp"
#include "lib/config/config.hpp"

namespace ferry::amd {

using core::ErrorKind;
using core::Failure;

SdmaPlan::SdmaPlan(Devices& devices, SdmaParts parts)
    : devices_(devices),
      parts_(std::move(parts)),
      on_host_(!parts_.in_hardware),
      faults_(devices.faults.total()) {
  devices_.faults.watch(parts_.node, parts_.control.trigger(), parts_.control.done());
}

// Epochs that were programmed and never started stay in their rings: such queues end with the plan.
// What a kernel may still look at is never freed.
SdmaPlan::~SdmaPlan() {
  devices_.faults.forget(parts_.control.trigger());
  if (stream_starts_ != nullptr && !stream_starts_->end()) {
    static_cast<void>(stream_starts_.release());
    static_cast<void>(new ControlPage(parts_.control));
  }
  if (done() >= armed_) return;
  for (const ArmedRing& ring : parts_.rings) ring.queue().give_up();
}

std::uint64_t SdmaPlan::room() const {
  std::uint64_t least = UINT64_MAX;
  for (const ArmedRing& ring : parts_.rings) least = std::min(least, ring.room());
  return least;
}

bool SdmaPlan::arm_next() {
  if (room() == 0) return false;
  ++armed_;
  for (ArmedRing& ring : parts_.rings) ring.arm(armed_);
  return true;
}

device::StartHandle SdmaPlan::handle_of(std::uint64_t starts) const {
  device::StartHandle handle;
  handle.release = parts_.control.trigger();
  handle.done = parts_.control.done();
  handle.first = parts_.first + armed_ - starts + 1;
  handle.starts = starts;
  return handle;
}

device::StartHandle SdmaPlan::arm(int starts) {
  look_at_kernels();
  if (!status_.ok()) throw Failure(status_);
  if (!parts_.in_hardware) {
    throw Failure(
        ErrorKind::request, "the host carries out the packets of this plan: no kernel can start it",
        "start it with ferry_start or ferry_start_on_stream; ferry_explain tells why");
  }
  const auto wanted = static_cast<std::uint64_t>(starts);
  if (const std::uint64_t most = room(); most < wanted) {
    throw Failure(
        ErrorKind::request,
        fmt::format("{} more starts do not fit into the rings, {} do", wanted, most),
        "arm fewer, and more of them when those are complete");
  }
  for (std::uint64_t i = 0; i < wanted; ++i) arm_next();
  handed_out_ = armed_;
  return handle_of(wanted);
}

std::uint64_t SdmaPlan::started() const {
  return device::load_acquire(parts_.control.trigger()) - parts_.first;
}

// Pairs with the fences behind the last packet of an epoch, between which the word may be small.
std::uint64_t SdmaPlan::done() const {
  return std::max(device::load_acquire(parts_.control.done()), parts_.first) - parts_.first;
}

void SdmaPlan::start() {
  look_at_kernels();
  if (!status_.ok()) return;
  if (armed_ == started() && !arm_next()) {
    fail({ErrorKind::request, "a start before the one before it was complete", {}});
    return;
  }
  // The release makes the buffers visible to the engines, whose polls come after it.
  device::fetch_add(parts_.control.trigger(), std::uint64_t{1});
}

core::Poll SdmaPlan::progress() {
  look_at_kernels();
  if (!status_.ok()) return core::Poll::ready;
  for (const ArmedRing& ring : parts_.rings) {
    core::Status status = ring.queue().progress();
    if (!status.ok()) {
      status.cause = fmt::format("{}, to rank {}: {}", parts_.label, ring.peer(), status.cause);
      fail_for_all(std::move(status));
      return core::Poll::ready;
    }
  }
  if (done() >= started()) return core::Poll::ready;
  look_at_faults();
  return status_.ok() ? core::Poll::pending : core::Poll::ready;
}

// Of this GPU, and now and then what other ranks have told of theirs.
void SdmaPlan::look_at_faults() {
  constexpr std::uint32_t kLooks = 64;
  if (devices_.faults.total() != faults_) {
    faults_ = devices_.faults.total();
    const GpuFault fault = devices_.faults.last(parts_.node);
    if (fault.number != 0) return fail_for_all(describe(fault));
  }
  if (++looks_ % kLooks != 0) return;
  for (const FaultBoard* board : parts_.boards) {
    const core::Status told = board->read();
    if (!told.ok()) return fail(told);
  }
}

core::Status SdmaPlan::describe(const GpuFault& fault) const {
  const auto guilty = [&](const ArmedRing& ring) { return ring.copies_at(fault.address); };
  const auto busy = [](const ArmedRing& ring) { return !ring.queue().drained(); };
  auto ring = std::find_if(parts_.rings.begin(), parts_.rings.end(), guilty);
  if (ring == parts_.rings.end()) {
    ring = std::find_if(parts_.rings.begin(), parts_.rings.end(), busy);
  }
  if (ring == parts_.rings.end()) ring = std::prev(ring);
  return {
      ErrorKind::bad_packet,
      fmt::format(
          "{}, start {}: the GPU reports a fault at {:#x}; {} to rank {} stands at {}",
          parts_.label, started(), fault.address, ring->queue().name(), ring->peer(),
          ring->next_packet()),
      "keep buffers allocated until the handle is freed; else see ferry-info --selftest"};
}

// The others wait for copies of this rank that will not come.
void SdmaPlan::fail_for_all(core::Status status) {
  status.cause = fmt::format("rank {}: {}", parts_.rank, status.cause);
  if (!parts_.boards.empty()) {
    parts_.boards[static_cast<std::size_t>(parts_.rank)]->tell(status);
  }
  fail(status);
}

void SdmaPlan::fail(const core::Status& status) {
  status_ = status;
  for (const ArmedRing& ring : parts_.rings) ring.queue().give_up();
}

// Kernels wait as long as every wait may take.
void SdmaPlan::look_at_kernels() {
  if (stream_starts_ == nullptr || !status_.ok() || !stream_starts_->gave_up()) return;
  fail(
      {ErrorKind::timeout,
       fmt::format("waited {} s on a stream: {}", core::config().timeout, missing()),
       "see whether all ranks still make the same calls, or raise FERRY_TIMEOUT"});
}

// Programmed now, released when the stream comes to it. A graph would start it once only.
bool SdmaPlan::start_by_kernel(void* stream) {
  if (on_host_ || devices_.runtime.captures(stream)) return false;
  if (stream_starts_ == nullptr) {
    try {
      stream_starts_ = std::make_unique<StreamStarts>(
          devices_.kernels, devices_.gpu(parts_.node), core::config().timeout);
    } catch (const Failure&) { // a function on the host does as well
      return false;
    }
  }
  if (!arm_next()) return false;
  try {
    stream_starts_->launch(handle_of(1), stream);
  } catch (const Failure& failure) {
    fail(failure.status());
    throw;
  }
  return true;
}

// Also in a graph, which replays the call and not its outcome: what changes from start to start is
// read when it runs.
void SdmaPlan::start_on_stream(void* stream) {
  look_at_kernels();
  if (!status_.ok()) throw Failure(status_);
  if (started() < handed_out_) {
    throw Failure(
        ErrorKind::request, "starts of the handle that were armed are not all made",
        "make them before a start on a stream");
  }
  if (start_by_kernel(stream)) return;
  on_host_ = true; // and arms when it runs: nobody may arm before it
  devices_.runtime.call_on_stream(stream, &SdmaPlan::run_on_stream, this);
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
