// SPDX-License-Identifier: MIT
#pragma once

// The handle of a team, and what all operations on it share: the words of each pair, and the rule
// for operations that are too short for a packet.

#include <cstdint>

#include "packet.hpp"
#include "platform.hpp"
#include "put.hpp"
#include "ring.hpp"
#include "scope.hpp"
#include "signal.hpp"

namespace ferry::device {

inline constexpr std::uint32_t kTeamVersion = 1;

// A peer as this rank reaches it. One queue leads to a peer, so that a signal follows the data.
struct PeerHandle {
  RingHandle ring; // peers may share one, if it is for several producers
  std::uint64_t* settled = nullptr; // one for each ring: all packets below have taken effect
  char* window = nullptr; // the peer's window
  std::uint64_t* signals = nullptr; // the peer's signal words
};

// Passed by value to a kernel; what it points to belongs to the host. All words start at zero and
// are never reset. Windows are symmetric: an offset means the same place in each. The calls of a
// team that wait for peers in order (barrier, collectives) are made by one scope at a time.
struct TeamHandle {
  std::uint32_t size = sizeof(TeamHandle);
  std::uint32_t version = kTeamVersion;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  const PeerHandle* peers = nullptr; // ranks of them; the one of this rank needs no ring
  std::uint64_t window_bytes = 0;
  std::uint64_t threshold = 0; // shorter operations may go by load/store; 0: none may
  std::uint64_t* counts = nullptr; // count_words(ranks) of them, this rank's alone
  std::uint64_t* landed = nullptr; // counts the fences of this rank
  // sum_words(ranks) of them, this rank's alone, where the consumer of the rings stores what an
  // ATOMIC adds up to: it must then hear of what was added without it. Null: it adds.
  std::uint64_t* sums = nullptr;
};

// Each pair of ranks has one word for each of these, so that no two uses share one.
enum class Channel : std::uint32_t { user, barrier, ready, moved };
inline constexpr std::uint64_t kChannels = 4;

// The word of `sender` among the signal words of whoever receives; both sides call this.
constexpr FERRY_DEVICE_FN std::uint64_t slot(
    const TeamHandle& team, Channel channel, std::uint32_t sender) {
  return static_cast<std::uint64_t>(channel) * team.ranks + sender;
}

constexpr FERRY_DEVICE_FN std::uint64_t signal_words(std::uint64_t ranks) {
  return kChannels * ranks;
}

// How many signals of each channel and sender were awaited, then a ticket for each peer.
constexpr FERRY_DEVICE_FN std::uint64_t count_words(std::uint64_t ranks) {
  return (kChannels + 1) * ranks;
}

// What each word at a peer holds once all is there, then how much of it the rings know.
constexpr FERRY_DEVICE_FN std::uint64_t sum_words(std::uint64_t ranks) {
  return 2 * kChannels * ranks;
}

namespace detail {

FERRY_DEVICE_FN PutStatus
check(const TeamHandle& team, std::uint32_t peer, std::uint64_t offset, std::uint64_t bytes) {
  if (team.size != sizeof(TeamHandle) || team.version != kTeamVersion || peer >= team.ranks) {
    return PutStatus::bad_team;
  }
  const bool inside = bytes <= team.window_bytes && offset <= team.window_bytes - bytes;
  return inside ? PutStatus::done : PutStatus::bad_address;
}

// The producer that the ring of a peer was made for.
class PeerQueue {
 public:
  FERRY_DEVICE_FN explicit PeerQueue(const PeerHandle& peer) : ring_(peer.ring) {}
  FERRY_DEVICE_FN const RingHandle& ring() const { return ring_; }
  FERRY_DEVICE_FN Reservation reserve(std::uint64_t bytes) const {
    return shared() ? MultiProducer(ring_).reserve(bytes) : SingleProducer(ring_).reserve(bytes);
  }
  FERRY_DEVICE_FN void publish(const Reservation& r) const {
    if (shared()) {
      MultiProducer(ring_).publish(r);
    } else {
      SingleProducer(ring_).publish(r);
    }
  }

 private:
  FERRY_DEVICE_FN bool shared() const { return ring_.stamps != nullptr; }
  const RingHandle& ring_;
};

// Nothing that was posted to this peer is on its way. Says no while others post. The acquire pairs
// with settle().
FERRY_DEVICE_FN bool settled(const PeerHandle& peer) {
  return load_acquire(peer.settled) == load_relaxed(peer.ring.reserved);
}

// Waits for a ticket that ends with an ATOMIC. An engine begins one only when all before it on the
// queue has landed; having consumed other packets would not mean that.
template <class Backoff>
FERRY_DEVICE_FN bool settle(const PeerHandle& peer, std::uint64_t ticket, Backoff& backoff) {
  bool consumed = test_signal(peer.ring.rptr, ticket);
  for (; !consumed && backoff();) consumed = test_signal(peer.ring.rptr, ticket);
  if (!consumed) return false;
  std::uint64_t before = load_relaxed(peer.settled);
  // Another thread may raise it first, and higher. A lower value costs a packet, no more.
  if (before < ticket) cas(peer.settled, before, ticket);
  return true;
}

// THE rule of short operations: they go by load/store only while nothing is on its way to the peer.
// Otherwise they ride the queue, behind what was posted, so that neither they nor a signal behind
// them overtakes it. The leader looks, since lanes must not differ.
template <class Scope>
FERRY_DEVICE_FN bool by_store(
    const TeamHandle& team, std::uint32_t peer, std::uint64_t bytes, const Scope& scope) {
  if (peer == team.rank) return true;
  if (bytes >= team.threshold) return false;
  return scope.max(scope.is_leader() && settled(team.peers[peer]) ? 1 : 0) != 0;
}

struct __attribute__((may_alias, aligned(8))) Vec8 {
  std::uint64_t word;
};

// Lanes share [0, bytes) out exactly: words in turn where both sides are aligned to them, so that
// the stores of a wave lie side by side, then a part of what is left for each lane.
template <class Scope>
FERRY_DEVICE_FN void copy_by_lanes(
    void* destination, const void* source, std::uint64_t bytes, const Scope& scope) {
  char* const to = static_cast<char*>(destination);
  const char* const from = static_cast<const char*>(source);
  const bool aligned = (address_of(to) | address_of(from)) % sizeof(Vec8) == 0;
  const std::uint64_t words = aligned ? bytes / sizeof(Vec8) : 0;
  for (std::uint64_t i = scope.rank(); i < words; i += scope.size()) {
    reinterpret_cast<Vec8*>(to)[i] = reinterpret_cast<const Vec8*>(from)[i];
  }
  const std::uint64_t done = words * sizeof(Vec8);
  const std::uint64_t part = (bytes - done) / scope.size();
  const std::uint64_t more = (bytes - done) % scope.size(); // the first lanes copy one byte more
  const std::uint64_t rank = scope.rank();
  const std::uint64_t begin = done + rank * part + (rank < more ? rank : more);
  const std::uint64_t length = part + (rank < more ? 1 : 0);
  if (length != 0) __builtin_memcpy(to + begin, from + begin, length);
}

// What the leader got becomes what all lanes return.
template <class Scope>
FERRY_DEVICE_FN PutResult shared_result(const PutResult& leaders, const Scope& scope) {
  const bool leader = scope.is_leader();
  const std::uint64_t status = scope.max(leader ? static_cast<std::uint64_t>(leaders.status) : 0);
  const std::uint64_t ticket = scope.max(leader ? leaders.ticket : 0);
  return {static_cast<PutStatus>(status), ticket};
}

struct Transfer {
  void* destination;
  const void* source;
  std::uint64_t bytes;
  std::uint64_t* signal; // null for none
  std::uint64_t value;
  std::uint64_t* sum = nullptr; // of the signal, where the team keeps sums
};

// Of the word of a channel at a peer. This rank's own words have no engine, so that they are added
// to.
FERRY_DEVICE_FN std::uint64_t* sum_of(const TeamHandle& team, std::uint32_t peer, Channel channel) {
  if (team.sums == nullptr || peer == team.rank) return nullptr;
  return team.sums + slot(team, channel, peer);
}

// A word of which a sum is kept has one writer at a time, so that a store does what adding does
// elsewhere, without the way there and back.
FERRY_DEVICE_FN void signal_by_store(const Transfer& t) {
  if (t.signal == nullptr) return;
  if (t.sum == nullptr) {
    fetch_add(t.signal, t.value);
    return;
  }
  const std::uint64_t sum = load_relaxed(t.sum) + t.value;
  store_relaxed(t.sum, sum);
  store_release(t.signal, sum);
}

FERRY_DEVICE_FN PutResult
post_transfer(const TeamHandle& team, const PeerHandle& peer, const Transfer& t) {
  const PeerQueue queue(peer);
  if (t.signal == nullptr) return put(queue, t.destination, t.source, t.bytes);
  if (t.sum == nullptr) {
    return put_signal(queue, t.destination, t.source, t.bytes, t.signal, t.value);
  }
  // The packet also adds what went by store since the last one: the ring's own sum is right again.
  std::uint64_t* const known = t.sum + signal_words(team.ranks);
  const std::uint64_t sum = load_relaxed(t.sum) + t.value;
  const std::uint64_t unknown = sum - load_relaxed(known);
  const PutResult result = put_signal(queue, t.destination, t.source, t.bytes, t.signal, unknown);
  if (result.status != PutStatus::done) return result;
  store_relaxed(t.sum, sum);
  store_relaxed(known, sum);
  return result;
}

template <class Backoff, class Scope>
FERRY_DEVICE_FN PutResult transfer(
    const TeamHandle& team, std::uint32_t peer, const Transfer& t, Backoff& backoff,
    const Scope& scope) {
  // Every lane's stores to the source come before the leader's doorbell or signal, which the engine
  // or the waiting rank acquires.
  scope.sync();
  if (by_store(team, peer, t.bytes, scope)) {
    if (t.bytes != 0 && t.source == nullptr) return {PutStatus::bad_address, 0};
    copy_by_lanes(t.destination, t.source, t.bytes, scope);
    scope.sync(); // all parts before the signal; pairs with the acquire of test_signal()
    if (scope.is_leader()) signal_by_store(t);
    return {PutStatus::done, 0};
  }
  PutResult result;
  if (scope.is_leader()) {
    result = post_transfer(team, team.peers[peer], t);
    for (; result.status == PutStatus::would_block && backoff();) {
      result = post_transfer(team, team.peers[peer], t);
    }
  }
  return shared_result(result, scope);
}

FERRY_DEVICE_FN std::uint64_t* peer_word(
    const TeamHandle& team, std::uint32_t peer, Channel channel) {
  return team.peers[peer].signals + slot(team, channel, team.rank);
}

FERRY_DEVICE_FN const std::uint64_t* own_word(
    const TeamHandle& team, std::uint32_t sender, Channel channel) {
  return team.peers[team.rank].signals + slot(team, channel, sender);
}

FERRY_DEVICE_FN char* window_at(const TeamHandle& team, std::uint32_t peer, std::uint64_t offset) {
  return team.peers[peer].window + offset;
}

// The leader's answer for all lanes, together with what it acquired.
template <class Scope>
FERRY_DEVICE_FN bool agreed(bool leaders, const Scope& scope) {
  const bool answer = scope.max(scope.is_leader() && leaders ? 1 : 0) != 0;
  scope.sync();
  return answer;
}

// The worst of what all lanes got, together with what they acquired.
template <class Scope>
FERRY_DEVICE_FN PutStatus worst(PutStatus lanes, const Scope& scope) {
  const std::uint64_t status = scope.max(static_cast<std::uint64_t>(lanes));
  scope.sync();
  return static_cast<PutStatus>(status);
}

// An ATOMIC into this rank's own memory: what is posted later begins when all before has landed.
FERRY_DEVICE_FN PutResult post_fence(const TeamHandle& team, std::uint32_t peer) {
  return signal(PeerQueue(team.peers[peer]), team.landed);
}

template <class Backoff>
FERRY_DEVICE_FN bool drain(const TeamHandle& team, std::uint32_t peer, Backoff& backoff) {
  if (peer == team.rank || settled(team.peers[peer])) return true;
  PutResult fence = post_fence(team, peer);
  for (; fence.status == PutStatus::would_block && backoff();) fence = post_fence(team, peer);
  return fence.status == PutStatus::done && settle(team.peers[peer], fence.ticket, backoff);
}

// fn(peer) for every other rank, each by one lane. Ranks begin with different peers.
template <class Scope, class Fn>
FERRY_DEVICE_FN void for_each_peer(const TeamHandle& team, const Scope& scope, const Fn& fn) {
  for (std::uint64_t i = 1 + std::uint64_t{scope.rank()}; i < team.ranks; i += scope.size()) {
    fn(static_cast<std::uint32_t>((team.rank + i) % team.ranks));
  }
}

} // namespace detail

} // namespace ferry::device
