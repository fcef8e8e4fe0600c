// SPDX-License-Identifier: MIT
#pragma once

// What goes through rings in tests, and a consumer that checks every rule on the way.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "device/ring.hpp"
#include "lib/engine/queue.hpp"

namespace ferry::test {

using namespace ferry::device;
using ferry::core::HostRing;
using ferry::core::Producers;

inline constexpr std::uint32_t kPoison = 0xffff'ffff; // no packet begins like this

struct Sample {
  std::array<std::uint32_t, 16> dw{};
  std::uint64_t count = 0;
  std::uint64_t bytes() const { return count * 4; }
  PacketSpan span() const { return {dw.data(), count}; }
  friend bool operator==(const Sample&, const Sample&) = default;
};

inline std::uint64_t mix(std::uint64_t value) {
  value = (value ^ value >> 31) * 0x9e37'79b9'7f4a'7c15;
  return value ^ value >> 29;
}

// FENCE, POLL_REGMEM, COPY_LINEAR, ATOMIC, or WRITE_LINEAR of 5 .. 16 dwords, of at most `longest`
// bytes. Behind the header stands content that depends on producer and number, except for the
// length of WRITE; the consumers here do not execute it.
inline Sample make_sample(std::uint64_t producer, std::uint64_t number, std::uint64_t longest) {
  constexpr std::array<std::uint32_t, 4> kFixed = {
      0x0500'0004, 0x0800'0006, 0x0100'0007, 0x0a00'0008};
  const std::uint64_t random = mix(producer << 56 ^ number);
  const std::uint64_t write = 5 + (random >> 8) % 12;
  Sample packet;
  const bool writes = random % 4 == 0 && write * 4 <= longest;
  const std::uint32_t fixed = kFixed[(random >> 4) % kFixed.size()];
  packet.count = writes ? write : fixed & 0xff;
  for (std::uint64_t i = 1; i < packet.count; ++i) {
    packet.dw[i] = static_cast<std::uint32_t>(mix(random + i));
  }
  packet.dw[0] = writes ? 2 : fixed >> 24;
  packet.dw[1] = static_cast<std::uint32_t>(producer);
  packet.dw[2] = static_cast<std::uint32_t>(number);
  if (writes) packet.dw[3] = static_cast<std::uint32_t>(write - 5);
  return packet;
}

// Reads below the doorbell and checks every rule of the ring; poisons what it read before it
// releases the space.
class Consumer {
 public:
  explicit Consumer(const RingHandle& ring) : ring_(ring) {}

  // False when nothing is there, or when `problem` was set.
  bool next(Sample& packet) {
    bool taken = raw(packet);
    for (; taken && packet.dw[0] << 16 == 0;) taken = raw(packet);
    return taken;
  }
  std::uint64_t position() const { return position_; }
  const char* problem = "";

 private:
  bool sane(std::uint64_t doorbell) {
    if (doorbell < doorbell_) problem = "the doorbell went back";
    if (load_acquire(ring_.wptr) < doorbell) problem = "the doorbell is ahead of wptr";
    if (doorbell - position_ >= ring_.bytes) problem = "more than a ring below the doorbell";
    doorbell_ = doorbell;
    return *problem == 0;
  }

  bool raw(Sample& packet) {
    if (!sane(load_acquire(ring_.doorbell)) || position_ == doorbell_) return false;
    std::uint32_t* const at = ring_.base + (position_ & (ring_.bytes - 1)) / 4;
    const PacketInfo* const info = find_packet(at[0]);
    if (info == nullptr) problem = "a packet that was never written is below the doorbell";
    if (info == nullptr) return false;
    const std::uint64_t count = packet_dwords(*info, at);
    const bool padding = info->kind == PacketKind::nop;
    if (at + count > ring_.base + ring_.bytes / 4) problem = "a packet straddles the end";
    if (position_ + count * 4 > doorbell_) problem = "the doorbell cuts a packet";
    if (!padding && count > packet.dw.size()) problem = "a packet that nobody made";
    if (*problem != 0) return false;
    packet = {};
    packet.count = count;
    std::copy_n(at, padding ? 1 : count, packet.dw.data());
    std::fill_n(at, count, kPoison);
    position_ += packet.bytes();
    store_release(ring_.rptr, position_);
    return true;
  }

  RingHandle ring_;
  std::uint64_t position_ = 0;
  std::uint64_t doorbell_ = 0;
};

template <class Producer>
HostRing make_ring(std::size_t bytes) {
  HostRing ring(
      bytes, std::is_same_v<Producer, SingleProducer> ? Producers::one : Producers::several);
  std::fill_n(ring.handle().base, bytes / 4, kPoison);
  return ring;
}

} // namespace ferry::test
