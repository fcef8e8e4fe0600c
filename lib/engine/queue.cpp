// SPDX-License-Identifier: MIT
#include "lib/engine/queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "device/platform.hpp"

namespace ferry::core {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLine = 64;
constexpr std::size_t kSmallestRing = 2 * device::kRingUnit;
constexpr int kCursors = 7;

} // namespace

void HostRing::Release::operator()(void* memory) const noexcept {
  ::operator delete (memory, std::align_val_t{kPage});
}

HostRing::HostRing(std::size_t ring_bytes, Producers producers) {
  if (!std::has_single_bit(ring_bytes) || ring_bytes < kSmallestRing) {
    throw Failure(
        ErrorKind::argument,
        fmt::format(
            "a ring of {} bytes is not a power of two of at least {}", ring_bytes, kSmallestRing));
  }
  const bool shared = producers == Producers::several;
  const std::size_t stamps = shared ? ring_bytes / device::kRingUnit * sizeof(std::uint64_t) : 0;
  const std::size_t total = ring_bytes + kCursors * kLine + stamps;
  memory_.reset(::operator new (total, std::align_val_t{kPage}));
  std::memset(memory_.get(), 0, total);

  char* const base = static_cast<char*>(memory_.get());
  const auto cursor = [&](int i) {
    return reinterpret_cast<std::uint64_t*>(
        base + ring_bytes + static_cast<std::size_t>(i) * kLine);
  };
  handle_.base = reinterpret_cast<std::uint32_t*>(base);
  handle_.bytes = ring_bytes;
  handle_.wptr = cursor(0);
  handle_.rptr = cursor(1);
  handle_.doorbell = cursor(2);
  handle_.reserved = cursor(3);
  handle_.rptr_hint = cursor(4);
  if (!shared) return;
  handle_.committed = cursor(5);
  handle_.arrivals = cursor(6);
  handle_.stamps = cursor(kCursors);
}

Queue::Queue(std::size_t ring_bytes, Producers producers) : ring_(ring_bytes, producers) {}

void Queue::publish(std::uint64_t new_wptr) noexcept {
  const device::RingHandle& ring = ring_.handle();
  device::store_relaxed(ring.reserved, new_wptr);
  device::store_release(ring.wptr, new_wptr);
  device::store_release(ring.doorbell, new_wptr);
}

std::uint64_t Queue::written() const noexcept {
  return device::load_acquire(ring_.handle().wptr);
}

std::uint64_t Queue::consumed() const noexcept {
  return device::load_acquire(ring_.handle().rptr);
}

QueueState Queue::consume(int max_packets) {
  if (failed()) return QueueState::failed;
  const device::RingHandle& ring = ring_.handle();
  // Pairs with the release of the doorbell: everything below it was written before.
  const std::uint64_t doorbell = device::load_acquire(ring.doorbell);
  if (!plausible(doorbell)) return QueueState::failed;
  for (int i = 0; i < max_packets && position_ != doorbell; ++i) {
    const std::uint64_t at = position_ & (ring.bytes - 1);
    const std::uint64_t published = (doorbell - position_) / 4;
    const std::uint64_t contiguous = std::min(published, (ring.bytes - at) / 4);
    std::uint64_t used = 0;
    switch (decoder_.step(ring.base + at / 4, published, contiguous, &used)) {
      case StepState::blocked:
        return QueueState::blocked;
      case StepState::failed:
        return fail(decoder_.error().kind, decoder_.error().cause);
      case StepState::done:
        break;
    }
    position_ += used * 4;
    // Pairs with the acquire of a producer that reuses the space, or of a flush.
    device::store_release(ring.rptr, position_);
  }
  return position_ == doorbell ? QueueState::drained : QueueState::advanced;
}

bool Queue::plausible(std::uint64_t doorbell) {
  const std::uint64_t ahead = doorbell - position_;
  if (ahead <= ring_.handle().bytes && doorbell % 4 == 0) return true;
  fail(
      ErrorKind::bad_packet, fmt::format(
                                 "doorbell {:#x} is {}", doorbell,
                                 doorbell % 4 != 0      ? "not a dword"
                                 : doorbell < position_ ? "behind the consumer"
                                                        : "more than a ring ahead"));
  return false;
}

QueueState Queue::fail(ErrorKind kind, const std::string& cause) {
  error_.kind = kind;
  error_.cause = fmt::format("queue {} offset {:#x}: {}", id_, position_, cause);
  error_.remedy = decoder_.error().remedy;
  failed_.store(true, std::memory_order_release);
  return QueueState::failed;
}

} // namespace ferry::core
