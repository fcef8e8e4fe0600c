// SPDX-License-Identifier: MIT
#include "lib/nvidia/plan.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "device/platform.hpp"
#include "lib/base/clock.hpp"
#include "lib/config/config.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/driver.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "lib/nvidia/watch.hpp"

namespace ferry::nvidia {

namespace {

constexpr std::uint32_t kLooksPerQuery = 4096; // looks at the word between two at the stream
constexpr double kSettleSeconds = 10; // for what is in flight when a plan is freed
constexpr double kAbortSeconds = 1; // for kernels that are told to give up

} // namespace

StreamPlan::StreamPlan(const Blocks& blocks, Wiring wiring, core::DeviceTeam& team)
    : blocks_(blocks),
      wiring_(std::move(wiring)),
      team_(team),
      queues_(std::make_unique<Queues>()) {
  stream_words_ = StreamWords(wiring_.started, patience());
}

StreamPlan::~StreamPlan() {
  if (watched_) Watch::instance().remove(this);
  settle();
}

Patience StreamPlan::patience() const {
  const double limit = core::config().timeout * 1e9;
  ControlWords* const words = queues_->control.get();
  return {&words->abort, &words->failed, static_cast<std::uint64_t>(limit)};
}

void StreamPlan::make_sides(std::size_t number) {
  queues_->sides.resize(number);
  queues_->ended.resize(number);
}

void StreamPlan::fork(hipStream_t stream) {
  if (queues_->sides.empty()) return;
  check_runtime(hipEventRecord(queues_->forked.get(), stream), "cudaEventRecord");
  for (const Stream& side : queues_->sides) {
    check_runtime(hipStreamWaitEvent(side.get(), queues_->forked.get(), 0), "cudaStreamWaitEvent");
  }
}

void StreamPlan::join(hipStream_t stream) {
  for (std::size_t i = 0; i < queues_->sides.size(); ++i) {
    const hipEvent_t ended = queues_->ended[i].get();
    check_runtime(hipEventRecord(ended, side(i)), "cudaEventRecord");
    check_runtime(hipStreamWaitEvent(stream, ended, 0), "cudaStreamWaitEvent");
  }
}

void StreamPlan::start() {
  if (!status_.ok()) return;
  try {
    const DeviceScope scope(wiring_.device);
    note_released();
    if (started_ < armed_) {
      device::store_release(&queues_->control->release, ++started_);
      return;
    }
    stream_words_.begin(false);
    follow_default_stream();
    enqueue(queues_->own.get());
    ++started_;
    armed_ = started_;
    std::uint64_t* const done = &queues_->control->done;
    StreamWords::write(queues_->own.get(), {&done, 1}, started_);
  } catch (const core::Failure& failure) {
    fail(failure.status());
  }
}

// A copy from pageable memory may still be on its way when the call that made it returns, and
// memory operations of a stream do not look at the default stream as kernels and copies do.
void StreamPlan::follow_default_stream() {
  check_runtime(hipEventRecord(queues_->forked.get(), hipStreamLegacy), "cudaEventRecord");
  check_runtime(
      hipStreamWaitEvent(queues_->own.get(), queues_->forked.get(), 0), "cudaStreamWaitEvent");
}

// Kernels release starts that the host has not counted yet.
void StreamPlan::note_released() {
  started_ = std::max(started_, device::load_acquire(&queues_->control->release));
}

device::StartHandle StreamPlan::arm(int starts) {
  if (!status_.ok()) throw core::Failure(status_);
  const DeviceScope scope(wiring_.device);
  const hipStream_t stream = queues_->own.get();
  if (queues_->done.get() == nullptr) queues_->done = DeviceBlock(sizeof(std::uint64_t));
  auto* const seen = queues_->done.at<std::uint64_t>(0);
  std::uint64_t* const words[] = {seen, &queues_->control->done};
  const std::uint64_t first = armed_ + 1;
  for (int i = 0; i < starts; ++i) {
    StreamWords::wait_for(stream, &queues_->control->release, armed_ + 1);
    stream_words_.begin(false);
    enqueue(stream);
    StreamWords::write(stream, words, ++armed_);
  }
  device::StartHandle handle;
  handle.release = &queues_->control->release;
  handle.done = seen;
  handle.first = first;
  handle.starts = static_cast<std::uint64_t>(starts);
  return handle;
}

void StreamPlan::start_on_stream(void* stream) {
  if (!status_.ok()) throw core::Failure(status_);
  note_released();
  if (started_ < armed_) {
    throw core::Failure(
        core::ErrorKind::request, "starts of the handle that were armed are not all made",
        "make them before a start on a stream");
  }
  const DeviceScope scope(wiring_.device);
  auto* const target = static_cast<hipStream_t>(stream);
  hipStreamCaptureStatus capture = hipStreamCaptureStatusNone;
  check_runtime(hipStreamIsCapturing(target, &capture), "cudaStreamIsCapturing");
  const bool captured = capture != hipStreamCaptureStatusNone;
  stream_words_.begin(captured);
  enqueue(target);
  if (captured) return;
  check_runtime(hipEventRecord(queues_->last.get(), target), "cudaEventRecord");
  on_stream_ = true;
  if (!watched_) Watch::instance().add(this, [this] { return look_after_stream(); });
  watched_ = true;
}

// By the thread of the watch. The event is asked, not waited for: most starts end long before.
bool StreamPlan::look_after_stream() {
  const DeviceScope scope(wiring_.device); // this thread has chosen none
  // What is asked here must not spoil a capture that the program is making.
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
  hipThreadExchangeStreamCaptureMode(&mode);
  if (hipEventQuery(queues_->last.get()) != hipErrorNotReady) return true;
  const core::Status peers = team_.check_alive();
  if (peers.ok()) return true;
  std::fprintf(
      stderr, "ferry: %s on %s, started on a stream: %s\n", core::name_of(blocks_.desc.operation),
      team_.name().c_str(), peers.cause.c_str());
  device::store_release(&queues_->control->abort, std::uint32_t{1});
  return false;
}

core::Poll StreamPlan::progress() {
  if (!status_.ok() || device::load_acquire(&queues_->control->done) >= started_) {
    if (status_.ok() && device::load_relaxed(&queues_->control->failed) != 0) {
      fail({core::ErrorKind::timeout, "a wait on the GPU gave up: " + missing(), ""});
    }
    return core::Poll::ready;
  }
  if (++looks_ % kLooksPerQuery != 0) return core::Poll::pending;
  const auto code = hipStreamQuery(queues_->own.get());
  if (code == hipSuccess || code == hipErrorNotReady) return core::Poll::pending;
  hipGetLastError();
  fail({core::ErrorKind::other, fmt::format("the GPU: {}", hipGetErrorString(code)), ""});
  return core::Poll::ready;
}

std::string StreamPlan::missing() const {
  return fmt::format(
      "{} on {}, start {}: a peer has not come to it on its GPU",
      core::name_of(blocks_.desc.operation), team_.name(), started_);
}

void StreamPlan::fail(core::Status status) {
  status_ = std::move(status);
  device::store_release(&queues_->control->abort, std::uint32_t{1});
}

bool StreamPlan::busy() const {
  return hipStreamQuery(queues_->own.get()) == hipErrorNotReady ||
         (on_stream_ && hipEventQuery(queues_->last.get()) == hipErrorNotReady);
}

// What is in flight may still come to its end. Kernels that wait are made to give up. Copies that
// wait for a peer cannot be taken back, and must not begin: what they use is then never freed.
void StreamPlan::settle() {
  int before = -1;
  hipGetDevice(&before);
  hipSetDevice(wiring_.device);
  const bool all_released =
      started_ == armed_ || device::load_acquire(&queues_->control->release) >= armed_;
  const bool may_end = status_.ok() && all_released;
  const double until = core::now_seconds() + (may_end ? kSettleSeconds : 0);
  for (; busy() && core::now_seconds() < until;) sched_yield();
  if (busy()) device::store_release(&queues_->control->abort, std::uint32_t{1});
  const double end = core::now_seconds() + kAbortSeconds;
  for (; busy() && core::now_seconds() < end;) sched_yield();
  if (busy()) {
    static_cast<void>(queues_.release());
    static_cast<void>(new Wiring(std::move(wiring_)));
  }
  hipGetLastError();
  if (before >= 0) hipSetDevice(before);
}

} // namespace ferry::nvidia
