// SPDX-License-Identifier: MIT
#pragma once

// The barrier of a team. Also what collectives are made of: one signal for each pair and channel.

#include <cstdint>

#include "platform.hpp"
#include "put.hpp"
#include "rma.hpp"
#include "scope.hpp"
#include "signal.hpp"
#include "team.hpp"

namespace ferry::device {

namespace detail {

// Adds one to the word of this rank and channel at the peer, behind what was put there before.
template <class Backoff>
FERRY_DEVICE_FN PutStatus
notify(const TeamHandle& team, std::uint32_t peer, Channel channel, Backoff& backoff) {
  const Transfer nothing{
      nullptr, nullptr, 0, peer_word(team, peer, channel), 1, sum_of(team, peer, channel)};
  return transfer(team, peer, nothing, backoff, Thread{}).status;
}

// Awaits the next signal of this sender and channel. What was awaited is counted in memory that no
// peer writes, so early signals of the next call are neither lost nor mistaken, and there is no
// base to be read.
template <class Backoff>
FERRY_DEVICE_FN PutStatus
await(const TeamHandle& team, std::uint32_t sender, Channel channel, Backoff& backoff) {
  std::uint64_t* const count = team.counts + slot(team, channel, sender);
  const std::uint64_t next = load_relaxed(count) + 1;
  const std::uint64_t* const word = own_word(team, sender, channel);
  bool arrived = test_signal(word, next);
  for (; !arrived && backoff();) arrived = test_signal(word, next);
  if (!arrived) return PutStatus::timed_out;
  store_relaxed(count, next);
  return PutStatus::done;
}

FERRY_DEVICE_FN void keep_worst(PutStatus& status, PutStatus other) {
  if (other > status) status = other;
}

} // namespace detail

// Returns done when all ranks have called it; whatever any rank put anywhere before has then
// landed. On any other answer the team is out of step and must not be used again.
template <class Backoff, class Scope = Thread>
FERRY_DEVICE_FN PutStatus
barrier(const TeamHandle& team, Backoff backoff, const Scope& scope = {}) {
  PutStatus status = detail::check(team, team.rank, 0, 0);
  if (status != PutStatus::done) return status;
  // Arrival must not overtake payload, not even on its way to a third rank.
  if (!quiet(team, backoff, scope)) return PutStatus::timed_out;
  detail::for_each_peer(team, scope, [&](std::uint32_t peer) {
    detail::keep_worst(status, detail::notify(team, peer, Channel::barrier, backoff));
  });
  detail::for_each_peer(team, scope, [&](std::uint32_t peer) {
    detail::keep_worst(status, detail::await(team, peer, Channel::barrier, backoff));
  });
  return detail::worst(status, scope);
}

} // namespace ferry::device
