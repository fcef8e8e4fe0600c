// SPDX-License-Identifier: MIT
#pragma once

// Whole collectives inside a kernel, on a team. All ranks make the same calls in the same order,
// each by one scope. Receive buffers lie in the windows, at the same offset everywhere. A rank says
// `ready` to those that will write into it, puts when it is told so, and awaits `moved` behind the
// data; both only count, so calls follow each other without a barrier, any number of times. Returns
// done when this rank's data are complete and its source may be reused. On any other answer the
// team is out of step and must not be used again.

#include <cstdint>

#include "barrier.hpp"
#include "platform.hpp"
#include "put.hpp"
#include "scope.hpp"
#include "team.hpp"

namespace ferry::device {

namespace detail {

FERRY_DEVICE_FN std::uint64_t* ticket_of(const TeamHandle& team, std::uint32_t peer) {
  return team.counts + signal_words(team.ranks) + peer;
}

// One lane, one peer: the block, and the signal behind it on the same queue.
template <class Backoff>
FERRY_DEVICE_FN PutStatus send_block(
    const TeamHandle& team, std::uint32_t peer, std::uint64_t to, const void* from,
    std::uint64_t bytes, Backoff& backoff) {
  const PutStatus ready = await(team, peer, Channel::ready, backoff);
  if (ready != PutStatus::done) return ready;
  const Transfer block{
      window_at(team, peer, to),         from, bytes, peer_word(team, peer, Channel::moved), 1,
      sum_of(team, peer, Channel::moved)};
  const PutResult posted = transfer(team, peer, block, backoff, Thread{});
  store_relaxed(ticket_of(team, peer), posted.ticket);
  return posted.status;
}

// The block has left, and since it ends with a signal the queue is settled again.
template <class Backoff>
FERRY_DEVICE_FN PutStatus
complete_block(const TeamHandle& team, std::uint32_t peer, Backoff& backoff) {
  const bool landed = settle(team.peers[peer], load_relaxed(ticket_of(team, peer)), backoff);
  return landed ? PutStatus::done : PutStatus::timed_out;
}

// Every rank sends to every rank: from + stride * p goes to rank p, as block `rank` of what lies at
// `to`. All signals `ready` come before the first wait; each lane stays with its peers.
template <class Backoff, class Scope>
FERRY_DEVICE_FN PutStatus exchange(
    const TeamHandle& team, std::uint64_t to, const char* from, std::uint64_t stride,
    std::uint64_t bytes, Backoff& backoff, const Scope& scope) {
  PutStatus status = check(team, team.rank, to, 0);
  if (status != PutStatus::done) return status;
  if (bytes > (team.window_bytes - to) / team.ranks) return PutStatus::bad_address;
  if (bytes != 0 && from == nullptr) return PutStatus::bad_address;
  const std::uint64_t mine = to + bytes * team.rank;
  scope.sync(); // all lanes' stores to the source before any lane's doorbell
  for_each_peer(team, scope, [&](std::uint32_t peer) {
    keep_worst(status, notify(team, peer, Channel::ready, backoff));
  });
  copy_by_lanes(window_at(team, team.rank, mine), from + stride * team.rank, bytes, scope);
  for_each_peer(team, scope, [&](std::uint32_t peer) {
    keep_worst(status, send_block(team, peer, mine, from + stride * peer, bytes, backoff));
  });
  for_each_peer(team, scope, [&](std::uint32_t peer) {
    keep_worst(status, await(team, peer, Channel::moved, backoff));
    keep_worst(status, complete_block(team, peer, backoff));
  });
  return worst(status, scope);
}

} // namespace detail

// Block p of the source, bytes long, goes to rank p; block p at offset `to` comes from rank p.
template <class Backoff, class Scope = Thread>
FERRY_DEVICE_FN PutStatus alltoall(
    const TeamHandle& team, std::uint64_t to, const void* from, std::uint64_t bytes,
    Backoff backoff, const Scope& scope = {}) {
  return detail::exchange(team, to, static_cast<const char*>(from), bytes, bytes, backoff, scope);
}

// The source, bytes long, goes to all; block p at offset `to` comes from rank p.
template <class Backoff, class Scope = Thread>
FERRY_DEVICE_FN PutStatus allgather(
    const TeamHandle& team, std::uint64_t to, const void* from, std::uint64_t bytes,
    Backoff backoff, const Scope& scope = {}) {
  return detail::exchange(team, to, static_cast<const char*>(from), 0, bytes, backoff, scope);
}

// What lies at offset `at` of the root's window comes to the same place in all windows.
template <class Backoff, class Scope = Thread>
FERRY_DEVICE_FN PutStatus broadcast(
    const TeamHandle& team, std::uint32_t root, std::uint64_t at, std::uint64_t bytes,
    Backoff backoff, const Scope& scope = {}) {
  PutStatus status = detail::check(team, root, at, bytes);
  if (status != PutStatus::done) return status;
  scope.sync(); // all lanes' stores to the buffer before any lane's doorbell or signal
  if (team.rank == root) {
    const char* const from = detail::window_at(team, root, at);
    detail::for_each_peer(team, scope, [&](std::uint32_t peer) {
      detail::keep_worst(status, detail::send_block(team, peer, at, from, bytes, backoff));
    });
    detail::for_each_peer(team, scope, [&](std::uint32_t peer) {
      detail::keep_worst(status, detail::complete_block(team, peer, backoff));
    });
  } else if (scope.is_leader()) {
    status = detail::notify(team, root, Channel::ready, backoff);
    if (status == PutStatus::done) {
      status = detail::await(team, root, Channel::moved, backoff);
    }
  }
  return detail::worst(status, scope);
}

} // namespace ferry::device
