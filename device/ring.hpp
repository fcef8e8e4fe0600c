// SPDX-License-Identifier: MIT
#pragma once

// Producers of a ring of SDMA packets. All cursors are monotonic byte offsets; a position in the
// ring is a cursor modulo its size. Order of a submission: packet bytes -> wptr -> doorbell.
// The consumer acquires the doorbell, reads packets below it, and releases rptr.

#include <cstdint>

#include "packet.hpp"
#include "platform.hpp"

namespace ferry::device {

inline constexpr std::uint32_t kRingVersion = 1;
// Reservations of a ring with several producers are multiples of this: one stamp word each.
inline constexpr std::uint64_t kRingUnit = 32;
// A reservation that lost this many races reports would-block instead of trying on.
inline constexpr int kReserveAttempts = 64;

// Passed by value to a kernel; the owner of the memory is on the host.
struct RingHandle {
  std::uint32_t size = sizeof(RingHandle);
  std::uint32_t version = kRingVersion;
  std::uint32_t* base = nullptr;
  std::uint64_t bytes = 0; // power of two
  std::uint64_t* wptr = nullptr;
  std::uint64_t* rptr = nullptr;
  std::uint64_t* doorbell = nullptr;
  std::uint64_t* reserved = nullptr; // end of the last reservation
  std::uint64_t* rptr_hint = nullptr; // lower bound of rptr, cheap to read, shared, monotone
  std::uint64_t* stamps = nullptr; // several producers only: bytes / kRingUnit words
  std::uint64_t* committed = nullptr; // several producers only: everything below is complete
  std::uint64_t* arrivals = nullptr; // several producers only: zero when nobody publishes
  std::uint64_t max_copy_bytes = kSafeCopyBytes; // longest copy packet that put() emits
};

// [begin, end) of the ring belongs to the caller until it is published. Packets go to
// [offset, end); what lies before is padding, already filled.
struct Reservation {
  std::uint64_t begin = 0;
  std::uint64_t offset = 0;
  std::uint64_t end = 0;
  bool granted = false;
  FERRY_DEVICE_FN explicit operator bool() const { return granted; }
};

// The longest reservation: with padding before it, it still fits an empty ring.
FERRY_DEVICE_FN std::uint64_t max_reservation(const RingHandle& ring) {
  return ring.bytes / 2;
}

// Copies dwords to ring offset `offset`; they must not straddle the end of the ring.
FERRY_DEVICE_FN void place(
    const RingHandle& ring, std::uint64_t offset, const std::uint32_t* dwords,
    std::uint64_t count) {
  std::uint32_t* const to = ring.base + (offset & (ring.bytes - 1)) / 4;
  for (std::uint64_t i = 0; i < count; ++i) store_relaxed(to + i, dwords[i]);
}

// Fills [offset, end) with NOPs. Dwords that the first NOP cannot count are NOPs themselves.
FERRY_DEVICE_FN void place_nops(const RingHandle& ring, std::uint64_t offset, std::uint64_t end) {
  if (offset == end) return;
  const std::uint64_t count = (end - offset) / 4;
  std::uint32_t* const to = ring.base + (offset & (ring.bytes - 1)) / 4;
  store_relaxed(to, nop_header(count < kMaxNopDwords ? count : kMaxNopDwords));
  for (std::uint64_t i = 1; i < count; ++i) store_relaxed(to + i, std::uint32_t{0});
}

namespace detail {

// Where `bytes` go behind the cursor `base`: a reservation never straddles the end of the ring.
FERRY_DEVICE_FN Reservation
locate(const RingHandle& ring, std::uint64_t base, std::uint64_t bytes) {
  const std::uint64_t room = ring.bytes - (base & (ring.bytes - 1));
  const std::uint64_t offset = bytes <= room ? base : base + room;
  return {base, offset, offset + bytes, false};
}

// Strict: a full ring would look like an empty one. The acquire pairs with the consumer's release
// of rptr, directly or through the producer that raised the hint. An end below rptr comes from an
// outdated cursor: it fits, and the exchange of the cursor then fails.
FERRY_DEVICE_FN bool fits(const RingHandle& ring, std::uint64_t end) {
  std::uint64_t hint = load_acquire(ring.rptr_hint);
  if (end < hint + ring.bytes) return true;
  const std::uint64_t rptr = load_acquire(ring.rptr);
  // When the exchange fails another producer has raised the hint.
  if (rptr > hint) cas(ring.rptr_hint, hint, rptr);
  return end < rptr + ring.bytes;
}

FERRY_DEVICE_FN bool reservable(const RingHandle& ring, std::uint64_t bytes) {
  return bytes != 0 && bytes % 4 == 0 && bytes <= max_reservation(ring);
}

FERRY_DEVICE_FN void ring_doorbell(const RingHandle& ring, std::uint64_t end) {
  store_release(ring.wptr, end);
  store_release(ring.doorbell, end);
}

} // namespace detail

// Exactly one thread uses the ring. Reservations are published in the order they were made.
class SingleProducer {
 public:
  FERRY_DEVICE_FN explicit SingleProducer(const RingHandle& ring) : ring_(ring) {}
  FERRY_DEVICE_FN const RingHandle& ring() const { return ring_; }

  // Not granted: no room now, or bytes is not a dword multiple in 4 .. max_reservation().
  FERRY_DEVICE_FN Reservation reserve(std::uint64_t bytes) const {
    if (!detail::reservable(ring_, bytes)) return {};
    Reservation r = detail::locate(ring_, load_relaxed(ring_.reserved), bytes);
    if (!detail::fits(ring_, r.end)) return {};
    store_relaxed(ring_.reserved, r.end);
    place_nops(ring_, r.begin, r.offset);
    r.granted = true;
    return r;
  }

  // Hands everything up to the end of r to the consumer.
  FERRY_DEVICE_FN void publish(const Reservation& r) const { detail::ring_doorbell(ring_, r.end); }

 private:
  RingHandle ring_;
};

// Any number of threads use the ring. None waits for another: each stamps its reservation as
// complete; whoever finds nobody publishing moves the committed cursor over all complete
// reservations, rings once for all of them, and looks again when others arrived meanwhile.
class MultiProducer {
 public:
  FERRY_DEVICE_FN explicit MultiProducer(const RingHandle& ring) : ring_(ring) {}
  FERRY_DEVICE_FN const RingHandle& ring() const { return ring_; }

  // Not granted: no room now, too many lost races, or bytes is not a dword multiple in
  // 4 .. max_reservation().
  FERRY_DEVICE_FN Reservation reserve(std::uint64_t bytes) const {
    const std::uint64_t rounded = (bytes + kRingUnit - 1) / kRingUnit * kRingUnit;
    if (!detail::reservable(ring_, bytes) || rounded > max_reservation(ring_)) return {};
    std::uint64_t base = load_relaxed(ring_.reserved);
    for (int attempt = 0; attempt < kReserveAttempts; ++attempt) {
      Reservation r = detail::locate(ring_, base, rounded);
      if (!detail::fits(ring_, r.end)) return {};
      if (!cas(ring_.reserved, base, r.end)) continue;
      place_nops(ring_, r.begin, r.offset);
      place_nops(ring_, r.offset + bytes, r.end);
      r.granted = true;
      return r;
    }
    return {};
  }

  // The stamp's release pairs with the acquire in commit(); the arrival count makes sure that
  // somebody comes to look: an arrival that sees another's is seen by that one's settle().
  FERRY_DEVICE_FN void publish(const Reservation& r) const {
    store_release(stamp(r.begin), r.end);
    if (fetch_add(ring_.arrivals, std::uint64_t{1}) != 0) return;
    for (std::uint64_t seen = 1; seen != 0; seen = settle(seen)) commit();
  }

 private:
  FERRY_DEVICE_FN std::uint64_t* stamp(std::uint64_t begin) const {
    return ring_.stamps + (begin & (ring_.bytes - 1)) / kRingUnit;
  }

  // Only between an arrival that found zero and the settle() that restores it.
  FERRY_DEVICE_FN void commit() const {
    const std::uint64_t start = load_relaxed(ring_.committed);
    std::uint64_t end = start;
    // A stamp of an earlier lap is never above the cursor, so it cannot be taken for a new one. No
    // more stamps than the ring has units lie between committed and reserved.
    for (std::uint64_t unit = 0; unit < ring_.bytes / kRingUnit; ++unit) {
      const std::uint64_t next = load_acquire(stamp(end));
      if (next <= end) break;
      end = next;
    }
    if (end == start) return;
    store_relaxed(ring_.committed, end);
    detail::ring_doorbell(ring_, end);
  }

  // Leaves when no arrival came since `seen` were counted; otherwise the new count. Every further
  // round is owed to a producer that has gone its way already.
  FERRY_DEVICE_FN std::uint64_t settle(std::uint64_t seen) const {
    return cas(ring_.arrivals, seen, std::uint64_t{0}) ? 0 : seen;
  }

  RingHandle ring_;
};

} // namespace ferry::device
