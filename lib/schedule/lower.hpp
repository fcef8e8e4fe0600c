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
  std::uint64_t send = 0; // first byte of block 0
  std::uint64_t recv = 0;
  std::uint64_t send_stride =
      0; // to the next block; 0: the address is that of the block in question
  std::uint64_t recv_stride = 0;
  std::uint64_t stage = 0;
  std::uint64_t signals = 0;
  bool operator==(const RankAddresses&) const = default;
};

// A block of the lowering rank whose bytes may lie apart.
struct OwnBlock {
  std::uint64_t address = 0; // that its layout refers to
  Layout layout;
  bool operator==(const OwnBlock&) const = default;
};

struct AddressBook {
  int rank = 0; // the lowering rank
  std::vector<RankAddresses> ranks;
  // Own blocks one by one, where they are not plain: in place of ranks[rank].send and .recv.
  std::vector<OwnBlock> send;
  std::vector<OwnBlock> recv;

  // The own block that a place lies in, or null when it is plain or not of this rank.
  [[nodiscard]] const OwnBlock* own(const Place& place) const;
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

// A step for the calling thread: of queue 0, and of queues that copy blocks with gaps.
struct HostOp {
  StepKind kind = StepKind::copy;
  std::uint64_t to = 0; // copy; signal: address of the word
  std::uint64_t from = 0; // copy
  const Layout* to_layout = nullptr; // copy: unpacks there, from byte `to_skip` of the block on
  const Layout* from_layout = nullptr;
  std::uint64_t to_skip = 0;
  std::uint64_t from_skip = 0;
  std::uint64_t bytes = 0;
  int peer = 0;
  SignalKind signal = SignalKind::ready;
  std::size_t word = 0; // await
  std::uint64_t ordinal = 0;
};

struct HostQueue {
  int peer = 0;
  std::vector<HostOp> ops;
};

struct Program {
  Program() = default;
  Program(Program&&) = default;
  Program& operator=(Program&&) = default;

  std::vector<RingImage> rings;
  std::vector<HostQueue> host; // queue 0 first
  std::vector<std::uint64_t> arrivals; // Schedule::arrivals()
  std::vector<Layout> layouts; // that host operations point to
};

// Resolve addresses and encode. Copies are split into packets of at most max_packet_bytes; the
// signal of a transfer stays behind its last packet, in the same ring. Steps on slots are left out:
// lower_slots() takes them.
[[nodiscard]] Program lower(
    const Schedule& schedule, const AddressBook& book, std::uint64_t max_packet_bytes);

} // namespace ferry::core
