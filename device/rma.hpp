// SPDX-License-Identifier: MIT
#pragma once

// Puts, gets and signals between the ranks of a team, each made by a scope: one reservation and one
// doorbell a call.

#include <cstdint>

#include "packet.hpp"
#include "platform.hpp"
#include "put.hpp"
#include "ring.hpp"
#include "scope.hpp"
#include "signal.hpp"
#include "team.hpp"

namespace ferry::device {

namespace detail {

// Not for completion flags: an engine may overlap a WRITE with the copy before it. The signal that
// follows is an ATOMIC, which it does not.
FERRY_DEVICE_FN PutResult
post_value(const PeerHandle& peer, std::uint64_t address, std::uint64_t value) {
  WriteHeader header{};
  if (build_write(header, address, 2) != PacketStatus::ok) return {PutStatus::bad_address, 0};
  const PeerQueue queue(peer);
  const std::uint32_t data[2] = {
      static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
  const Reservation r = queue.reserve(sizeof header + sizeof data);
  if (!r) return {PutStatus::would_block, 0};
  place(queue.ring(), r.offset, header.dw, 4);
  place(queue.ring(), r.offset + sizeof header, data, 2);
  queue.publish(r);
  return {PutStatus::done, r.end};
}

} // namespace detail

// Copies bytes to offset `to` of the peer's window. Once flushed, the source may be reused.
template <class Scope = Thread>
FERRY_DEVICE_FN PutResult put_nbi(
    const TeamHandle& team, std::uint32_t peer, std::uint64_t to, const void* from,
    std::uint64_t bytes, const Scope& scope = {}) {
  const PutStatus status = detail::check(team, peer, to, bytes);
  if (status != PutStatus::done) return {status, 0};
  Attempts once(0);
  return detail::transfer(
      team, peer, {detail::window_at(team, peer, to), from, bytes, nullptr, 0}, once, scope);
}

// The same, and behind the data adds to the word of this rank at the peer. Zero bytes still signal.
template <class Scope = Thread>
FERRY_DEVICE_FN PutResult put_signal(
    const TeamHandle& team, std::uint32_t peer, std::uint64_t to, const void* from,
    std::uint64_t bytes, std::uint64_t value = 1, const Scope& scope = {}) {
  const PutStatus status = detail::check(team, peer, to, bytes);
  if (status != PutStatus::done) return {status, 0};
  Attempts once(0);
  std::uint64_t* const word = detail::peer_word(team, peer, Channel::user);
  return detail::transfer(
      team, peer,
      {detail::window_at(team, peer, to), from, bytes, word, value,
       detail::sum_of(team, peer, Channel::user)},
      once, scope);
}

// Adds to the word of this rank at the peer, behind everything that was put there before.
template <class Scope = Thread>
FERRY_DEVICE_FN PutResult signal(
    const TeamHandle& team, std::uint32_t peer, std::uint64_t value = 1, const Scope& scope = {}) {
  return put_signal(team, peer, 0, nullptr, 0, value, scope);
}

// True once the source of this operation may be reused; says nothing about the peer.
template <class Backoff, class Scope = Thread>
FERRY_DEVICE_FN bool flush(
    const TeamHandle& team, std::uint32_t peer, const PutResult& operation, Backoff backoff,
    const Scope& scope = {}) {
  if (detail::check(team, peer, 0, 0) != PutStatus::done) return false;
  if (operation.ticket == 0) return true; // nothing was posted
  scope.sync(); // all lanes have posted
  const std::uint64_t* const rptr = team.peers[peer].ring.rptr;
  return detail::agreed(scope.is_leader() && wait_signal(rptr, operation.ticket, backoff), scope);
}

// put_nbi() that waits for room, then for the source.
template <class Backoff, class Scope = Thread>
FERRY_DEVICE_FN PutStatus
put(const TeamHandle& team, std::uint32_t peer, std::uint64_t to, const void* from,
    std::uint64_t bytes, Backoff backoff, const Scope& scope = {}) {
  const PutStatus status = detail::check(team, peer, to, bytes);
  if (status != PutStatus::done) return status;
  const PutResult posted = detail::transfer(
      team, peer, {detail::window_at(team, peer, to), from, bytes, nullptr, 0}, backoff, scope);
  if (posted.status != PutStatus::done) return posted.status;
  return flush(team, peer, posted, backoff, scope) ? PutStatus::done : PutStatus::timed_out;
}

// Stores one aligned 64-bit value, which the caller need not keep.
template <class Scope = Thread>
FERRY_DEVICE_FN PutResult put_value(
    const TeamHandle& team, std::uint32_t peer, std::uint64_t to, std::uint64_t value,
    const Scope& scope = {}) {
  const PutStatus status = detail::check(team, peer, to, sizeof value);
  if (status != PutStatus::done) return {status, 0};
  char* const word = detail::window_at(team, peer, to);
  if (detail::address_of(word) % sizeof value != 0) return {PutStatus::bad_address, 0};
  scope.sync();
  if (detail::by_store(team, peer, sizeof value, scope)) {
    if (scope.is_leader()) store_relaxed(reinterpret_cast<std::uint64_t*>(word), value);
    return {PutStatus::done, 0};
  }
  PutResult result;
  if (scope.is_leader()) {
    result = detail::post_value(team.peers[peer], detail::address_of(word), value);
  }
  return detail::shared_result(result, scope);
}

// Copies from offset `from` of the peer's window; the bytes are there when it returns done.
template <class Backoff, class Scope = Thread>
FERRY_DEVICE_FN PutStatus
get(const TeamHandle& team, std::uint32_t peer, void* to, std::uint64_t from, std::uint64_t bytes,
    Backoff backoff, const Scope& scope = {}) {
  const PutStatus status = detail::check(team, peer, from, bytes);
  if (status != PutStatus::done) return status;
  if (bytes != 0 && to == nullptr) return PutStatus::bad_address;
  const bool posts = peer != team.rank && bytes != 0;
  const PutResult got = detail::transfer(
      team, peer,
      {to, detail::window_at(team, peer, from), bytes, posts ? team.landed : nullptr, 1}, backoff,
      scope);
  if (got.status != PutStatus::done) return got.status;
  bool here = true;
  if (got.ticket != 0 && scope.is_leader()) {
    here = detail::settle(team.peers[peer], got.ticket, backoff);
  }
  return detail::agreed(here, scope) ? PutStatus::done : PutStatus::timed_out;
}

// What is put to this peer later takes effect behind what was put there before. Does not wait.
template <class Scope = Thread>
FERRY_DEVICE_FN PutStatus
fence(const TeamHandle& team, std::uint32_t peer, const Scope& scope = {}) {
  const PutStatus status = detail::check(team, peer, 0, 0);
  if (status != PutStatus::done) return status;
  scope.sync();
  PutResult result;
  if (scope.is_leader()) {
    const bool by_store = peer == team.rank || detail::settled(team.peers[peer]);
    if (by_store) fetch_add(team.landed, std::uint64_t{1}); // no store passes it, either way
    if (!by_store) result = detail::post_fence(team, peer);
  }
  const PutStatus shared = detail::shared_result(result, scope).status;
  scope.sync();
  return shared;
}

// True once all that this team put anywhere before has landed there. Looks at every peer: there is
// no mask that could be too narrow.
template <class Backoff, class Scope = Thread>
FERRY_DEVICE_FN bool quiet(const TeamHandle& team, Backoff backoff, const Scope& scope = {}) {
  if (detail::check(team, team.rank, 0, 0) != PutStatus::done) return false;
  scope.sync(); // all lanes have posted
  PutStatus status = PutStatus::done;
  detail::for_each_peer(team, scope, [&](std::uint32_t peer) {
    if (!detail::drain(team, peer, backoff)) status = PutStatus::timed_out;
  });
  return detail::worst(status, scope) == PutStatus::done;
}

// Whether the signals of rank `from` have come to `expected` in all, and with them what it put here
// before.
template <class Scope = Thread>
FERRY_DEVICE_FN bool test_signal(
    const TeamHandle& team, std::uint32_t from, std::uint64_t expected, const Scope& scope = {}) {
  if (detail::check(team, from, 0, 0) != PutStatus::done) return false;
  const std::uint64_t* const word = detail::own_word(team, from, Channel::user);
  return detail::agreed(scope.is_leader() && test_signal(word, expected), scope);
}

// False when the backoff gave up first; the data then must not be used.
template <class Backoff, class Scope = Thread>
FERRY_DEVICE_FN bool wait_signal(
    const TeamHandle& team, std::uint32_t from, std::uint64_t expected, Backoff backoff,
    const Scope& scope = {}) {
  if (detail::check(team, from, 0, 0) != PutStatus::done) return false;
  const std::uint64_t* const word = detail::own_word(team, from, Channel::user);
  return detail::agreed(scope.is_leader() && wait_signal(word, expected, backoff), scope);
}

} // namespace ferry::device
