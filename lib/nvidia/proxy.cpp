// SPDX-License-Identifier: MIT
#include "lib/nvidia/proxy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "device/platform.hpp"
#include "lib/base/clock.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/driver.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "lib/nvidia/memory.hpp"

namespace ferry::nvidia {

namespace {

constexpr int kTurn = 64; // packets of one ring before the next one has its turn
constexpr double kBusySeconds = 2e-3; // of looking after the last packet
constexpr std::chrono::microseconds kFirstNap{20};
constexpr std::chrono::microseconds kLongestNap{500};
constexpr std::size_t kLine = 64;

// Words are gathered: one call of the driver takes many.
class DeviceCommandStream final : public CommandStream {
 public:
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) override {
    submit();
    check_driver(driver().copy(to, from, bytes, stream_.get()), "cuMemcpyAsync");
  }
  void fill(std::uint64_t to, std::uint32_t pattern, std::uint64_t bytes) override {
    submit();
    check_driver(driver().fill(to, pattern, bytes / 4, stream_.get()), "cuMemsetD32Async");
  }
  void write32(std::uint64_t address, std::uint32_t value) override {
    CUstreamBatchMemOpParams op{};
    op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    op.writeValue.address = address;
    op.writeValue.value = value;
    gathered_.push_back(op);
  }
  void write64(std::uint64_t address, std::uint64_t value) override {
    CUstreamBatchMemOpParams op{};
    op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    op.writeValue.address = address;
    op.writeValue.value64 = value;
    gathered_.push_back(op);
  }
  void wait32(std::uint64_t address, std::uint32_t value) override {
    CUstreamBatchMemOpParams op{};
    op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    op.waitValue.address = address;
    op.waitValue.value = value;
    op.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    gathered_.push_back(op);
  }
  void wait64(std::uint64_t address, std::uint64_t value) override {
    CUstreamBatchMemOpParams op{};
    op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    op.waitValue.address = address;
    op.waitValue.value64 = value;
    op.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    gathered_.push_back(op);
  }
  void submit() override {
    constexpr std::size_t kMost = 128;
    for (std::size_t at = 0; at < gathered_.size(); at += kMost) {
      const auto number = static_cast<unsigned>(std::min(kMost, gathered_.size() - at));
      check_driver(
          driver().batch(stream_.get(), number, gathered_.data() + at, 0), "cuStreamBatchMemOp");
    }
    gathered_.clear();
  }

 private:
  Stream stream_;
  std::vector<CUstreamBatchMemOpParams> gathered_;
};

} // namespace

std::unique_ptr<CommandStream> make_command_stream() {
  return std::make_unique<DeviceCommandStream>();
}

ProxyRing::ProxyRing(std::size_t bytes, core::WindowSet windows)
    : words_(4 * kLine), windows_(std::move(windows)), stream_(make_command_stream()) {
  const std::size_t total = bytes + kLine;
  check_runtime(
      hipHostMalloc(&host_, total, hipHostMallocMapped | hipHostMallocPortable), "cudaHostAlloc");
  std::memset(host_, 0, total);
  auto* const base = static_cast<char*>(host_);
  handle_.base = reinterpret_cast<std::uint32_t*>(base);
  handle_.bytes = bytes;
  handle_.wptr = reinterpret_cast<std::uint64_t*>(base + bytes);
  handle_.doorbell = handle_.wptr; // the translator looks at no other
  handle_.rptr = words_.at<std::uint64_t>(0);
  handle_.reserved = words_.at<std::uint64_t>(kLine);
  handle_.rptr_hint = words_.at<std::uint64_t>(2 * kLine);
  translator_ = std::make_unique<Translator>(handle_, windows_);
}

ProxyRing::~ProxyRing() {
  stream_.reset();
  if (host_ != nullptr) hipHostFree(host_);
}

core::Status ProxyRing::error() const {
  return failed_.load(std::memory_order_acquire) ? broken_ : core::Status{};
}

Proxy::Proxy(int device) : device_(device) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Proxy::~Proxy() = default;

void Proxy::add(ProxyRing& ring) {
  const std::lock_guard lock(mutex_);
  rings_.push_back(&ring);
  changed_.notify_all();
}

void Proxy::remove(ProxyRing& ring) {
  const std::lock_guard lock(mutex_);
  std::erase(rings_, &ring);
}

// One turn of each ring. True: packets came.
bool Proxy::look() {
  bool moved = false;
  for (ProxyRing* ring : rings_) moved = look_at(*ring) || moved;
  return moved;
}

// A ring that failed stands still; others go on.
bool Proxy::look_at(ProxyRing& ring) {
  if (ring.failed_.load(std::memory_order_relaxed)) return false;
  try {
    const Translator::State state = ring.translator_->advance(*ring.stream_, kTurn);
    if (state != Translator::State::failed) return state == Translator::State::moved;
    ring.broken_ = ring.translator_->error();
  } catch (const core::Failure& failure) {
    ring.broken_ = failure.status();
  }
  std::fprintf(stderr, "ferry: %s\n", ring.broken_.cause.c_str());
  ring.failed_.store(true, std::memory_order_release);
  return false;
}

void Proxy::run(const std::stop_token& stop) {
  hipSetDevice(device_);
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed; // captures of the program go on
  hipThreadExchangeStreamCaptureMode(&mode);
  double last = core::now_seconds();
  auto nap = kFirstNap;
  std::unique_lock lock(mutex_);
  for (; changed_.wait(lock, stop, [this] { return !rings_.empty(); });) {
    if (stop.stop_requested()) return;
    const bool moved = look();
    const double now = core::now_seconds();
    if (moved) {
      last = now;
      nap = kFirstNap;
    }
    lock.unlock(); // for add() and remove()
    if (now - last > kBusySeconds) {
      std::this_thread::sleep_for(nap);
      nap = std::min(nap * 2, kLongestNap);
    } else {
      device::cpu_relax();
    }
    lock.lock();
  }
}

} // namespace ferry::nvidia
