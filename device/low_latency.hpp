// SPDX-License-Identifier: MIT
#pragma once

// The exchange of short blocks by one kernel. Data travel in words of 8 bytes, 4 of data and 4 of
// the epoch, each stored at once: a word that has come says so itself, and no fence, no signal and
// no second crossing of the link is needed. There are two halves of words for each pair, for odd
// and even epochs. Each word of a half is stored in each of its epochs, so that what stands there
// from before is never taken for new.
//
// A half is written again two starts later. The sender knows that it was read: what the peer sends
// in the start between comes after. Where the peer has no data to send it sends one word without
// data as it enters, which is awaited not now but at the next start.

#include <cstdint>

#include "kernel.hpp"
#include "platform.hpp"
#include "put.hpp"
#include "scope.hpp"
#include "wide_copy.hpp"

namespace ferry::device {

// One peer as this rank sees it; both ends have the same sizes.
struct LowLatencyPeer {
  const void* from = nullptr;
  std::uint64_t send_bytes = 0;
  void* to = nullptr;
  std::uint64_t receive_bytes = 0;
  std::uint64_t* their_words = nullptr; // at the peer: two halves, this rank stores there
  const std::uint64_t* own_words = nullptr; // here: the peer stores there
};

// Passed by value to a kernel. Peers stand in an order of their own at each rank, so that not all
// send to the same one first.
struct LowLatencyArgs {
  std::uint32_t size = sizeof(LowLatencyArgs);
  std::uint32_t version = kKernelVersion;
  const LowLatencyPeer* peers = nullptr;
  std::uint64_t peer_count = 0;
  std::uint64_t half_words = 0; // words of a half, the same for all pairs
  OwnBlock own;
  KernelProgress* progress = nullptr;
  KernelReport* report = nullptr;
  std::uint64_t patience = 0; // for the backoff
};

// Words that a direction takes: one even without data, if data go the other way.
constexpr FERRY_DEVICE_FN std::uint64_t low_latency_words(
    std::uint64_t bytes, std::uint64_t bytes_back) {
  const std::uint64_t words = (bytes + 3) / 4;
  return words == 0 && bytes_back != 0 ? 1 : words;
}

namespace detail {

FERRY_DEVICE_FN std::uint64_t half_of(const LowLatencyArgs& args, std::uint64_t epoch) {
  return epoch % 2 * args.half_words;
}

// Word i of a block whose last word may be short, at any address.
FERRY_DEVICE_FN std::uint32_t gather_word(
    const void* from, std::uint64_t bytes, std::uint64_t word) {
  const std::uint64_t at = word * 4;
  const std::uint64_t left = at < bytes ? bytes - at : 0;
  const char* const p = static_cast<const char*>(from) + at;
  if (left >= 4 && reinterpret_cast<std::uint64_t>(p) % 4 == 0) {
    return reinterpret_cast<const Dword*>(p)->word;
  }
  std::uint32_t value = 0;
  for (std::uint64_t k = 0; k < 4 && k < left; ++k) {
    value |= std::uint32_t{static_cast<unsigned char>(p[k])} << (8 * k);
  }
  return value;
}

FERRY_DEVICE_FN void scatter_word(
    void* to, std::uint64_t bytes, std::uint64_t word, std::uint32_t value) {
  const std::uint64_t at = word * 4;
  const std::uint64_t left = at < bytes ? bytes - at : 0;
  char* const p = static_cast<char*>(to) + at;
  if (left >= 4 && reinterpret_cast<std::uint64_t>(p) % 4 == 0) {
    reinterpret_cast<Dword*>(p)->word = value;
    return;
  }
  for (std::uint64_t k = 0; k < 4 && k < left; ++k) {
    p[k] = static_cast<char>(value >> (8 * k) & 0xff);
  }
}

// The flag of an epoch is its low half: what a half holds otherwise is two epochs old.
FERRY_DEVICE_FN bool word_came(std::uint64_t word, std::uint64_t epoch) {
  return static_cast<std::uint32_t>(word >> 32) == static_cast<std::uint32_t>(epoch);
}

// Data and flag come in one load, which no other needs to be ordered with.
template <class Backoff>
FERRY_DEVICE_FN bool await_word(
    const std::uint64_t* word, std::uint64_t epoch, Backoff& backoff, std::uint64_t* value) {
  *value = load_relaxed(word);
  for (; !word_came(*value, epoch) && backoff();) *value = load_relaxed(word);
  return word_came(*value, epoch);
}

// False: the word by which the peer says that it has left the epoch before last did not come.
template <class Backoff, class Scope>
FERRY_DEVICE_FN bool send_words(
    const LowLatencyArgs& args, const LowLatencyPeer& peer, std::uint64_t epoch, Backoff& backoff,
    const Scope& scope) {
  if (peer.receive_bytes == 0 && peer.send_bytes != 0 && epoch > 1) {
    std::uint64_t word;
    if (!await_word(peer.own_words + half_of(args, epoch - 1), epoch - 1, backoff, &word)) {
      return false;
    }
  }
  const std::uint64_t flag = std::uint64_t{static_cast<std::uint32_t>(epoch)} << 32;
  const std::uint64_t words = low_latency_words(peer.send_bytes, peer.receive_bytes);
  std::uint64_t* const to = peer.their_words + half_of(args, epoch);
  for (std::uint64_t i = scope.rank(); i < words; i += scope.size()) {
    store_relaxed(to + i, flag | gather_word(peer.from, peer.send_bytes, i));
  }
  return true;
}

template <class Backoff, class Scope>
FERRY_DEVICE_FN bool receive_words(
    const LowLatencyArgs& args, const LowLatencyPeer& peer, std::uint64_t epoch, Backoff& backoff,
    const Scope& scope) {
  const std::uint64_t words = (peer.receive_bytes + 3) / 4;
  const std::uint64_t* const from = peer.own_words + half_of(args, epoch);
  for (std::uint64_t i = scope.rank(); i < words; i += scope.size()) {
    std::uint64_t word;
    if (!await_word(from + i, epoch, backoff, &word)) return false;
    scatter_word(peer.to, peer.receive_bytes, i, static_cast<std::uint32_t>(word));
  }
  return true;
}

FERRY_DEVICE_FN bool fits(const LowLatencyArgs& args, const LowLatencyPeer& peer) {
  return low_latency_words(peer.send_bytes, peer.receive_bytes) <= args.half_words &&
         low_latency_words(peer.receive_bytes, peer.send_bytes) <= args.half_words;
}

} // namespace detail

FERRY_DEVICE_FN bool usable(const LowLatencyArgs& args) {
  return args.size == sizeof(LowLatencyArgs) && args.version == kKernelVersion &&
         args.progress != nullptr && args.report != nullptr &&
         (args.peer_count == 0 || args.peers != nullptr);
}

// One start, by all workgroups of a kernel: each serves whole peers. What failed stands in the
// report, and the exchange must not be started again.
template <class Backoff, class Scope>
FERRY_DEVICE_FN void run_low_latency(
    const LowLatencyArgs& args, const Backoff& patience, const Place& place, const Scope& scope) {
  if (!usable(args)) return;
  const std::uint64_t epoch = detail::epoch_of_start(args.progress);
  Backoff backoff = patience;
  const auto failed = [&](std::uint64_t peer, PutStatus status) {
    detail::report_failure(args.report, status, peer, epoch);
  };
  for (std::uint64_t p = place.block; p < args.peer_count; p += place.blocks) {
    const LowLatencyPeer& peer = args.peers[p];
    if (!detail::fits(args, peer)) {
      failed(p, PutStatus::too_long);
    } else if (!detail::send_words(args, peer, epoch, backoff, scope)) {
      failed(p, PutStatus::timed_out);
    }
  }
  if (place.block == place.blocks - 1) {
    copy_wide(args.own.to, args.own.from, args.own.bytes, scope);
  }
  for (std::uint64_t p = place.block; p < args.peer_count; p += place.blocks) {
    const LowLatencyPeer& peer = args.peers[p];
    if (detail::fits(args, peer) && !detail::receive_words(args, peer, epoch, backoff, scope)) {
      failed(p, PutStatus::timed_out);
    }
  }
  detail::end_of_start(args.progress, epoch, place, scope);
}

} // namespace ferry::device
