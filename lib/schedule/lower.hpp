// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "lib/schedule/schedule.hpp"

namespace ferry::core {

inline constexpr std::uint64_t kSignalStride = 64; // one cache line for each signal word

// Index of the word that `writer` raises for a kind, in the signal area of the rank that waits.
[[nodiscard]] constexpr std::size_t signal_index(SignalKind kind, int ranks, int writer) {
  return static_cast<std::size_t>(static_cast<int>(kind) * ranks + writer);
}

// Where the buffers of one rank lie, in addresses that the engine of the lowering rank accepts.
struct RankAddresses {
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
  std::uint64_t stage = 0;
  std::uint64_t signals = 0;
  bool operator==(const RankAddresses&) const = default;
};

struct AddressBook {
  std::vector<RankAddresses> ranks;
  [[nodiscard]] std::uint64_t of(const Place& place) const;
  [[nodiscard]] std::uint64_t signal(SignalKind kind, int owner, int writer) const;
  bool operator==(const AddressBook&) const = default;
};

// A poll whose 64-bit reference is set at each start: base of its word + ordinal.
struct PollPatch {
  std::uint32_t dword = 0; // index of the low reference dword in the ring image
  std::size_t word = 0; // signal_index in the own signal area
  std::uint64_t ordinal = 0;
};

// The packets of one epoch for one ring.
struct RingImage {
  int peer = 0;
  std::vector<std::uint32_t> dwords;
  std::vector<PollPatch> polls;
};

// A step of queue 0, for the calling thread.
struct HostOp {
  StepKind kind = StepKind::copy;
  std::uint64_t to = 0; // copy; signal: address of the word
  std::uint64_t from = 0; // copy
  std::uint64_t bytes = 0;
  int peer = 0;
  SignalKind signal = SignalKind::ready;
  std::size_t word = 0; // await
  std::uint64_t ordinal = 0;
};

struct Program {
  std::vector<RingImage> rings;
  std::vector<HostOp> host;
  std::vector<std::uint64_t> arrivals; // Schedule::arrivals()
};

// Resolve addresses and encode. Copies are split into packets of at most max_packet_bytes; the
// signal of a transfer stays behind its last packet, in the same ring.
[[nodiscard]] Program lower(
    const Schedule& schedule, const AddressBook& book, std::uint64_t max_packet_bytes);

} // namespace ferry::core
