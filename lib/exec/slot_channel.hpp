// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "lib/exec/block.hpp"
#include "lib/exec/team.hpp"
#include "lib/schedule/collective.hpp"
#include "lib/schedule/schedule.hpp"

namespace ferry::core {

// The steps of a schedule that go through slots, as loads and stores: which block goes into which
// slot and back.
struct SlotProgram {
  struct Move {
    int peer = 0; // reader of a put (or kEveryone), writer of a get
    int block = 0; // of the user's buffer
    bool in_recv = false; // the user's side lies in the receive buffer
    bool shared = false; // get: the slot that everyone reads
    std::uint32_t bytes = 0;
    std::uint64_t offset = 0; // of the block in a plain buffer
  };
  Operation operation = Operation::alltoall;
  std::uint8_t in_place = 0;
  std::uint16_t root = 0;
  std::vector<Move> puts;
  std::vector<Move> gets;
  bool copy_own = false;
};

[[nodiscard]] SlotProgram lower_slots(const Schedule& schedule, std::uint8_t call_bits, int root);

// The slots of one lane or persistent plan, on all ranks, with the credits that keep a writer from
// overtaking its readers. A writer may use a slot again once its readers completed the operation
// that used it before. A message of operation s tells that its writer has completed s - 1; only
// where no messages come back (the root of broadcasts) the readers' `credit` words are read.
class SlotChannel {
 public:
  // blocks: the block of each rank as mapped here.
  SlotChannel(Team& team, BlockLayout layout, std::vector<std::byte*> blocks);

  [[nodiscard]] bool may_put(int reader, std::uint64_t sequence);
  // Where the data of a put belong; publish() makes them visible with the flag.
  [[nodiscard]] std::byte* payload(const SlotProgram::Move& move, std::uint64_t sequence) const {
    return own_slot(move, sequence) + sizeof(SlotHeader);
  }
  void publish(
      const SlotProgram& program, const SlotProgram::Move& move, std::uint64_t sequence,
      bool mapped);
  [[nodiscard]] bool filled(const SlotProgram::Move& move, std::uint64_t sequence) const;
  // The slot that `writer` filled in operation `sequence`, or null as long as it has not.
  [[nodiscard]] const SlotHeader* look(const SlotProgram::Move& move, std::uint64_t sequence);
  void complete(std::uint64_t sequence);
  // Fetch the slot that this put will fill in operation `sequence` before it is needed: its readers
  // still hold its lines.
  void prepare(const SlotProgram::Move& move, std::uint64_t sequence);
  // Has `rank` read all that was put for it in operation `sequence`, as far as it has told?
  [[nodiscard]] bool has_read(int rank, std::uint64_t sequence);
  // Has `rank` completed operation `sequence`?
  [[nodiscard]] bool completed(int rank, std::uint64_t sequence);

  [[nodiscard]] Team& team() { return team_; }
  [[nodiscard]] const BlockLayout& layout() const { return layout_; }
  [[nodiscard]] std::byte* block(int rank) const { return blocks_[static_cast<std::size_t>(rank)]; }
  void note_done(int rank, std::uint64_t sequence) {
    auto& known = known_done_[static_cast<std::size_t>(rank)];
    if (known < sequence) known = sequence;
  }

 private:
  [[nodiscard]] std::byte* own_slot(const SlotProgram::Move& move, std::uint64_t sequence) const {
    const int index = move.peer == kEveryone ? shared_index(team_.rank()) : move.peer;
    return layout_.slot(block(team_.rank()), sequence, index);
  }
  [[nodiscard]] const SlotHeader& incoming(
      const SlotProgram::Move& move, std::uint64_t sequence) const;
  [[nodiscard]] int shared_index(int writer) const { return layout_.slot_count == 1 ? 0 : writer; }

  Team& team_;
  BlockLayout layout_;
  std::vector<std::byte*> blocks_;
  std::vector<std::uint64_t> known_done_;
  std::uint64_t demote_bytes_;
  std::uint64_t demote_ahead_bytes_;
};

// One operation on its way through a channel. Its end is told to the channel by the caller.
class SlotRun {
 public:
  // The description must outlive the run. mapped: peers are told that the receive buffer is.
  void begin(
      const SlotProgram& program, std::uint64_t sequence, const CollectiveDesc& desc,
      bool mapped = false);
  // ready when complete or failed; a failure is in status().
  Poll progress(SlotChannel& channel);
  [[nodiscard]] const Status& status() const { return status_; }
  // Of a run that is over: were the receive buffers of all writers and of this rank told as mapped?
  [[nodiscard]] bool all_mapped() const { return mapped_ && theirs_mapped_; }
  // The rank that is waited for now.
  [[nodiscard]] int waits_for() const;
  [[nodiscard]] bool waits_for_data() const { return next_put_ == puts(); }
  [[nodiscard]] const char* step() const { return waits_for_data() ? "data" : "a free slot"; }
  // Is the data there that was missing at the last progress()?
  [[nodiscard]] bool has_arrived(const SlotChannel& channel) const;

 private:
  [[nodiscard]] std::size_t puts() const { return program_->puts.size(); }
  bool put_all(SlotChannel& channel);
  bool get_all(SlotChannel& channel);
  void fill(const SlotProgram::Move& move, std::byte* payload) const;
  void take(const SlotProgram::Move& move, const SlotHeader& slot);

  const SlotProgram* program_ = nullptr;
  const CollectiveDesc* desc_ = nullptr;
  std::uint64_t sequence_ = 0;
  const std::byte* send_ = nullptr; // null when the blocks do not lie side by side
  std::byte* recv_ = nullptr;
  bool mapped_ = false;
  bool theirs_mapped_ = true;
  bool copied_ = false; // the own block, after the puts
  std::size_t next_put_ = 0;
  std::size_t next_get_ = 0;
  int blocked_on_ = 0;
  Status status_;
};

// What must be alike on all ranks of a call.
struct CallShape {
  Operation operation = Operation::alltoall;
  bool in_place = false;
  std::uint64_t bytes = 0; // of one block
  int root = 0;
};

// An error that tells both sides of two calls that do not fit together.
[[nodiscard]] Status mismatch(int rank, const CallShape& theirs, const CallShape& ours);

} // namespace ferry::core
