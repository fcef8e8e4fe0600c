// SPDX-License-Identifier: MIT
#pragma once

// The only file of this backend, with program.cpp, that knows schedules and how they are lowered.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/generation.hpp"
#include "lib/amd/unequal.hpp"
#include "lib/schedule/collective.hpp"

namespace ferry::amd {

// A collective as this backend can carry it: blocks without gaps.
struct Job {
  core::Operation operation = core::Operation::alltoall;
  bool in_place = false;
  int root = 0;
  std::uint64_t block_bytes = 0; // of blocks of equal size
  bool own_block = true; // is copied
  std::vector<PairBlocks> pairs; // of each rank, where blocks differ
  [[nodiscard]] bool unequal() const { return !pairs.empty(); }
  bool operator==(const Job&) const = default;
};

// Throws Failure for a call that it cannot carry. Where blocks differ, what pairs know of each
// other is not in it: see meet().
[[nodiscard]] Job job_of(const core::CollectiveDesc& desc, int rank);

[[nodiscard]] Buffers buffers_of(const core::CollectiveDesc& desc, int rank, int ranks);

// What one rank does, before anybody has an address.
class JobPlan {
 public:
  JobPlan(const Job& job, int rank, int ranks);
  [[nodiscard]] const Job& job() const { return job_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] std::uint64_t stage_bytes() const; // memory that this rank writes and others read
  [[nodiscard]] std::uint64_t signal_bytes() const; // of the signal words of one rank
  // The rank at the other end of each ring; the last ring is this rank's own.
  [[nodiscard]] std::vector<int> ring_peers() const;

 private:
  Job job_;
  int rank_;
  int ranks_;
};

// Where a rank's memory lies for the engines of this one.
struct RankPlaces {
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
  std::uint64_t stage = 0;
  std::uint64_t signals = 0;
};

struct Places {
  std::vector<RankPlaces> ranks; // of unequal blocks: where that of this rank begins
  std::uint64_t own_send = 0; // of unequal blocks: where this rank's buffers begin
  std::uint64_t own_recv = 0;
  std::uint64_t trigger = 0; // word that releases a start
  std::uint64_t done = 0; // word that tells of its end
};

// A poll of which each start sets what it compares with.
struct PollSpot {
  std::uint32_t header = 0; // dword
  std::uint32_t reference = 0; // dword
  std::uint64_t ordinal = 0; // the how-manieth signal of an epoch
  std::uint64_t each_epoch = 0; // signals in an epoch
};

// The packets of one epoch on one ring.
struct RingProgram {
  int peer = 0;
  std::vector<std::uint32_t> dwords;
  std::vector<PollSpot> polls;
  std::vector<std::uint32_t> fences; // dwords where the two begin that tell the end
  std::uint64_t done = 0; // the word that they write
};

// Every ring begins with a poll of the trigger, tells its end to the last ring, and that one writes
// the number of the epoch to the word `done`, when nothing of the epoch is left to do. That word,
// too, counts from `first` of set_epoch(), and nobody ever reads a number that is too large.
[[nodiscard]] std::vector<RingProgram> make_program(
    const JobPlan& plan, const Places& places, device::Generation generation,
    std::uint64_t max_packet_bytes);

// Sets the polls and the number of epoch `epoch`, counted from 1, in a copy of the packets at
// `dwords`. Words count from `first`. Polls with 32 bits compare with >=, but where the count of
// their word wraps in or near this epoch: there each waits for the value before its own to be gone,
// which is the same, since a word never runs more than an epoch ahead.
void set_epoch(
    const RingProgram& program, device::Generation generation, std::uint64_t first,
    std::uint64_t epoch, std::uint32_t* dwords);

} // namespace ferry::amd
