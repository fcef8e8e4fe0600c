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

// A packet, or several in a row, in the memory of the caller.
struct PacketSpan {
  const std::uint32_t* dwords = nullptr;
  std::uint64_t count = 0; // dwords
};

// Whether a producer may use what it was handed: version, geometry, and every word that it needs.
FERRY_DEVICE_FN bool usable(const RingHandle& ring) {
  return ring.size == sizeof(RingHandle) && ring.version == kRingVersion && ring.base != nullptr &&
         ring.bytes >= 2 * kRingUnit && (ring.bytes & (ring.bytes - 1)) == 0 &&
         ring.wptr != nullptr && ring.rptr != nullptr && ring.doorbell != nullptr &&
         ring.reserved != nullptr && ring.rptr_hint != nullptr;
}

FERRY_DEVICE_FN bool usable_by_several(const RingHandle& ring) {
  return usable(ring) && ring.stamps != nullptr && ring.committed != nullptr &&
         ring.arrivals != nullptr;
}

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

// Whether [base, end) is free. Strict: a full ring would look like an empty one. The acquire pairs
// with the consumer's release of rptr, directly or through the producer that raised the hint.
// Nothing is believed of an rptr above base, which no consumer can have reached: it is either
// newer than an outdated base, or not true.
FERRY_DEVICE_FN bool fits(const RingHandle& ring, std::uint64_t base, std::uint64_t end) {
  std::uint64_t hint = load_acquire(ring.rptr_hint);
  if (end - hint < ring.bytes) return true;
  const std::uint64_t rptr = load_acquire(ring.rptr);
  if (base - rptr >= ring.bytes) return false;
  // When the exchange fails another producer has raised the hint.
  if (rptr > hint) cas(ring.rptr_hint, hint, rptr);
  return end - rptr < ring.bytes;
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
    if (!detail::fits(ring_, r.begin, r.end)) return {};
    store_relaxed(ring_.reserved, r.end);
    place_nops(ring_, r.begin, r.offset);
    r.granted = true;
    return r;
  }

  // Hands everything up to the end of r to the consumer. False, and nothing is stored, when r was
  // not granted or lies below what was published already: the doorbell never goes back.
  FERRY_DEVICE_FN bool publish(const Reservation& r) const {
    if (!r || r.end <= load_relaxed(ring_.wptr)) return false;
    detail::ring_doorbell(ring_, r.end);
    return true;
  }

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
      if (!detail::fits(ring_, base, r.end)) {
        const std::uint64_t now = load_relaxed(ring_.reserved);
        if (now == base) return {};
        base = now; // there is room, perhaps, behind the reservation that was missed
        continue;
      }
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
  // False, and nothing is stored, when r was not granted. A reservation is published once.
  FERRY_DEVICE_FN bool publish(const Reservation& r) const {
    if (!r) return false;
    store_release(stamp(r.begin), r.end);
    if (fetch_add(ring_.arrivals, std::uint64_t{1}) != 0) return true;
    for (std::uint64_t seen = 1; seen != 0; seen = settle(seen)) commit();
    return true;
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

// Back-pressure with something to do: calls progress() as often as the ring has no room, until it
// returns false. It may consume this ring, or anything that its consumer waits for; it must not
// reserve on the same ring. What can never be granted is refused at once.
template <class Queue, class Progress>
FERRY_DEVICE_FN Reservation
reserve_or(const Queue& queue, std::uint64_t bytes, Progress&& progress) {
  Reservation r = queue.reserve(bytes);
  if (!detail::reservable(queue.ring(), bytes)) return r;
  for (; !r && progress();) r = queue.reserve(bytes);
  return r;
}

// One reservation and one doorbell for any number of packets, so that no packet of another producer
// comes between them. False, and nothing was posted: no room now, or more than max_reservation().
// No packets need no room.
template <class Queue>
FERRY_DEVICE_FN bool submit(const Queue& queue, const PacketSpan* packets, std::uint64_t number) {
  const std::uint64_t longest = max_reservation(queue.ring());
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < number; ++i) {
    if (packets[i].count > (longest - bytes) / 4) return false;
    bytes += packets[i].count * 4;
  }
  if (bytes == 0) return true;
  const Reservation r = queue.reserve(bytes);
  if (!r) return false;
  std::uint64_t at = r.offset;
  for (std::uint64_t i = 0; i < number; ++i) {
    place(queue.ring(), at, packets[i].dwords, packets[i].count);
    at += packets[i].count * 4;
  }
  return queue.publish(r);
}

// Where the packet of one lane lies in what its group submits.
struct GroupSlot {
  std::uint64_t before = 0; // bytes of the lanes before this one
  std::uint64_t total = 0; // bytes of all lanes
};

// The same for a group of lanes: each brings its packet, or none, and rank 0 reserves and rings for
// all. Every lane calls it with the same total, and the slots lie side by side over all of it;
// shared is memory that every lane of the group sees. Group has rank() and sync(), a barrier after
// which each lane sees what all have stored before. Nobody waits for another producer, and no
// barrier stands in a branch that lanes may take differently, so lanes of one wavefront cannot hold
// each other up. The fence is each lane's own: that of rank 0 would not cover the others' stores.
template <class Queue, class Group>
FERRY_DEVICE_FN bool submit_group(
    const Queue& queue, const Group& group, Reservation* shared, const GroupSlot& slot,
    const PacketSpan& packet) {
  if (slot.total == 0) return true;
  if (group.rank() == 0) *shared = queue.reserve(slot.total);
  group.sync();
  const Reservation r = *shared;
  if (r) place(queue.ring(), r.offset + slot.before, packet.dwords, packet.count);
  release_fence();
  group.sync();
  if (group.rank() == 0) queue.publish(r);
  return static_cast<bool>(r);
}

} // namespace ferry::device
