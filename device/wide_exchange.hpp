// SPDX-License-Identifier: MIT
#pragma once

// The exchange of long blocks by one kernel, straight into the receive buffers of the peers. Each
// pair of ranks is served by several workgroups on either side, and part k here meets part k there:
// it says that it has entered, waits for the other to have entered, copies its slice, and signals
// behind it. Workgroups of one kernel do not wait for each other.

#include <cstdint>

#include "kernel.hpp"
#include "platform.hpp"
#include "put.hpp"
#include "scope.hpp"
#include "signal.hpp"
#include "team.hpp"
#include "wide_copy.hpp"

namespace ferry::device {

// One peer as this rank sees it; both ends have the same sizes and the same number of parts. Each
// pointer to words leads to one for each part.
struct WidePeer {
  const void* from = nullptr;
  std::uint64_t send_bytes = 0;
  void* to = nullptr; // where they go at the peer
  std::uint64_t receive_bytes = 0;
  std::uint64_t* their_ready = nullptr; // at the peer: this rank has entered
  const std::uint64_t* own_ready = nullptr; // here: the peer has entered
  std::uint64_t* their_arrived = nullptr; // at the peer: the part has come
  const std::uint64_t* own_arrived = nullptr;
};

// Passed by value to a kernel of max(1, peer_count) * parts workgroups.
struct WideArgs {
  std::uint32_t size = sizeof(WideArgs);
  std::uint32_t version = kKernelVersion;
  const WidePeer* peers = nullptr;
  std::uint64_t peer_count = 0;
  std::uint64_t parts = 1;
  OwnBlock own;
  KernelProgress* progress = nullptr;
  KernelReport* report = nullptr;
  std::uint64_t patience = 0; // for the backoff
};

constexpr FERRY_DEVICE_FN std::uint64_t wide_blocks(const WideArgs& args) {
  return (args.peer_count == 0 ? 1 : args.peer_count) * args.parts;
}

namespace detail {

// What the leader acquired is acquired for all lanes.
template <class Backoff, class Scope>
FERRY_DEVICE_FN bool await_all(
    const std::uint64_t* word, std::uint64_t expected, const Backoff& patience,
    const Scope& scope) {
  return agreed(scope.is_leader() && wait_signal(word, expected, patience), scope);
}

// All sizes are the same on both sides, so all lanes take the same branches.
template <class Backoff, class Scope>
FERRY_DEVICE_FN PutStatus serve_part(
    const WidePeer& peer, std::uint64_t part, std::uint64_t parts, std::uint64_t epoch,
    const Backoff& patience, const Scope& scope) {
  // Whatever used the buffer here came before this kernel. What it left in caches is written back
  // by the release, lest it come out later, over what the peer puts there.
  if (peer.receive_bytes != 0 && scope.is_leader()) store_release(peer.their_ready + part, epoch);
  if (peer.send_bytes != 0) {
    if (!await_all(peer.own_ready + part, epoch, patience, scope)) return PutStatus::timed_out;
    const Slice slice = slice_of(peer.send_bytes, part, parts);
    copy_wide(
        static_cast<char*>(peer.to) + slice.begin,
        static_cast<const char*>(peer.from) + slice.begin, slice.bytes, scope);
    scope.sync(); // every lane's stores, before the leader's release
    if (scope.is_leader()) store_release(peer.their_arrived + part, epoch);
  }
  if (peer.receive_bytes == 0) return PutStatus::done;
  return await_all(peer.own_arrived + part, epoch, patience, scope) ? PutStatus::done
                                                                    : PutStatus::timed_out;
}

} // namespace detail

FERRY_DEVICE_FN bool usable(const WideArgs& args) {
  return args.size == sizeof(WideArgs) && args.version == kKernelVersion && args.parts != 0 &&
         args.progress != nullptr && args.report != nullptr &&
         (args.peer_count == 0 || args.peers != nullptr);
}

// One start, by all workgroups of a kernel. What failed stands in the report, and the exchange must
// not be started again.
template <class Backoff, class Scope>
FERRY_DEVICE_FN void run_wide(
    const WideArgs& args, const Backoff& patience, const Place& place, const Scope& scope) {
  if (!usable(args)) return;
  const std::uint64_t epoch = detail::epoch_of_start(args.progress);
  const bool whole = place.blocks == wide_blocks(args);
  PutStatus status = whole ? PutStatus::done : PutStatus::bad_team;
  const std::uint64_t peer = args.peer_count == 0 ? 0 : place.block % args.peer_count;
  if (whole) {
    const detail::Slice own = detail::slice_of(args.own.bytes, place.block, place.blocks);
    copy_wide(
        static_cast<char*>(args.own.to) + own.begin,
        static_cast<const char*>(args.own.from) + own.begin, own.bytes, scope);
  }
  if (whole && args.peer_count != 0) {
    const std::uint64_t part = place.block / args.peer_count;
    status = detail::serve_part(args.peers[peer], part, args.parts, epoch, patience, scope);
  }
  if (scope.is_leader()) detail::report_failure(args.report, status, peer, epoch);
  detail::end_of_start(args.progress, epoch, place, scope);
}

} // namespace ferry::device
