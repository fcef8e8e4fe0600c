// SPDX-License-Identifier: MIT
#pragma once

// Puts by packets. Each operation makes one reservation, so that no other producer can own bytes
// between its packets, and rings once. Queue is SingleProducer or MultiProducer.

#include <cstdint>

#include "packet.hpp"
#include "platform.hpp"
#include "ring.hpp"
#include "signal.hpp"

namespace ferry::device {

enum class PutStatus : std::uint32_t {
  done = 0,
  would_block, // no room in the ring now; nothing was posted, try again later
  bad_address, // null, wrapping around, or a signal that is not 8-byte aligned
  too_long, // more packets than one reservation may hold
  timed_out, // the backoff gave up: nothing is known about the data, and it must not be used
  bad_team, // a handle of another version, or no such peer
};

struct PutResult {
  PutStatus status = PutStatus::done;
  std::uint64_t ticket = 0; // for flush(): where the packets of this operation end
};

namespace detail {

// Emits the segments of a copy at *offset and moves it on. False: a segment was refused.
FERRY_DEVICE_FN bool place_segments(
    const RingHandle& ring, std::uint64_t* offset, std::uint64_t destination, std::uint64_t source,
    std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += ring.max_copy_bytes) {
    const std::uint64_t left = bytes - at;
    const std::uint64_t length = left < ring.max_copy_bytes ? left : ring.max_copy_bytes;
    CopyPacket packet{};
    if (build_copy(packet, destination + at, source + at, length) != PacketStatus::ok) return false;
    place(ring, *offset, packet.dw, 7);
    *offset += sizeof packet;
  }
  return true;
}

// Everything that could refuse a packet is checked before the reservation: a reservation must
// always be published, or it would hold up the ring.
template <class Queue>
FERRY_DEVICE_FN PutResult post(
    const Queue& queue, std::uint64_t destination, std::uint64_t source, std::uint64_t bytes,
    const AtomicPacket* signal) {
  const RingHandle& ring = queue.ring();
  const std::uint64_t longest = ring.max_copy_bytes;
  if (longest == 0 || longest > kMaxCopyBytes) return {PutStatus::too_long, 0};
  if (bytes != 0 && (destination == 0 || source == 0)) return {PutStatus::bad_address, 0};
  const std::uint64_t segments = bytes / longest + (bytes % longest != 0 ? 1 : 0);
  if (segments > max_reservation(ring) / sizeof(CopyPacket)) return {PutStatus::too_long, 0};
  const std::uint64_t size =
      segments * sizeof(CopyPacket) + (signal != nullptr ? sizeof(AtomicPacket) : 0);
  if (size == 0) return {PutStatus::done, 0};
  if (size > max_reservation(ring)) return {PutStatus::too_long, 0};
  const Reservation r = queue.reserve(size);
  if (!r) return {PutStatus::would_block, 0};
  std::uint64_t offset = r.offset;
  const bool placed = place_segments(ring, &offset, destination, source, bytes);
  if (placed && signal != nullptr) place(ring, offset, signal->dw, 8);
  if (!placed) place_nops(ring, r.offset, r.end);
  queue.publish(r);
  return {placed ? PutStatus::done : PutStatus::bad_address, r.end};
}

FERRY_DEVICE_FN std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

} // namespace detail

// Copies bytes from source to destination. Zero bytes post nothing.
template <class Queue>
FERRY_DEVICE_FN PutResult
put(const Queue& queue, void* destination, const void* source, std::uint64_t bytes) {
  return detail::post(
      queue, detail::address_of(destination), detail::address_of(source), bytes, nullptr);
}

// The same, and adds value to *signal behind the last segment, on the same queue. Zero bytes still
// signal.
template <class Queue>
FERRY_DEVICE_FN PutResult put_signal(
    const Queue& queue, void* destination, const void* source, std::uint64_t bytes,
    std::uint64_t* signal, std::uint64_t value = 1) {
  AtomicPacket packet{};
  if (build_atomic_add(packet, detail::address_of(signal), value) != PacketStatus::ok) {
    return {PutStatus::bad_address, 0};
  }
  return detail::post(
      queue, detail::address_of(destination), detail::address_of(source), bytes, &packet);
}

// Adds value to *signal after everything that was posted to this queue before.
template <class Queue>
requires requires(const Queue& queue) {
  queue.ring();
}
FERRY_DEVICE_FN PutResult
signal(const Queue& queue, std::uint64_t* signal_word, std::uint64_t value = 1) {
  return put_signal(queue, nullptr, nullptr, 0, signal_word, value);
}

// True once the operation with this ticket was consumed: its source may be reused. Says nothing
// about when the receiver sees the data; that is what signals are for.
template <class Queue, class Backoff>
FERRY_DEVICE_FN bool flush(const Queue& queue, const PutResult& operation, Backoff backoff) {
  return wait_signal(queue.ring().rptr, operation.ticket, backoff);
}

// True once everything was consumed that any producer had reserved on this queue before the call.
// A reservation that its producer has not published yet holds it up.
template <class Queue, class Backoff>
FERRY_DEVICE_FN bool quiet(const Queue& queue, Backoff backoff) {
  return wait_signal(queue.ring().rptr, load_relaxed(queue.ring().reserved), backoff);
}

} // namespace ferry::device
