// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/planner.hpp"
#include "collectives/table.hpp"
#include "lib/exec/device_memory.hpp"
#include "lib/exec/habits.hpp"
#include "lib/exec/mpi_path.hpp"
#include "lib/exec/offer.hpp"
#include "lib/exec/reduction.hpp"
#include "lib/exec/ring_plan.hpp"
#include "lib/exec/slot_channel.hpp"

namespace ferry::core {

class NodeOp;

// One blocking or non-blocking collective on its way.
struct LaneOp {
  enum class Phase { queued, running, mpi, complete };
  // Of the part that needs the peers' addresses.
  enum class Transfers { none, offer, gather, run };

  CollectiveDesc desc;
  std::unique_ptr<DeviceBounce> bounce; // of device memory: desc is on host memory
  std::shared_ptr<ReductionScript> script; // of a reduction: desc is the stage under way
  std::size_t stage = 0;
  bool stage_below = false; // the MPI below carries the stage
  bool stage_over = false; // its bytes are here, the arithmetic is still to do
  Phase phase = Phase::queued;
  Transfers transfers = Transfers::none;
  bool slots_open = false; // blocks in slots are still under way
  std::uint64_t sequence = 0;
  Status status;
  Path path = Path::local;
  const std::string* why = nullptr; // lives until the next operation begins
  std::string why_text; // kept for a non-blocking operation
  bool told = false;
  SlotRun slots;
  RingPlan* rings = nullptr;
  MpiPath mpi;
  std::shared_ptr<NodeOp> nodes; // of a call over nodes
  int waits_for = 0;

  [[nodiscard]] bool complete() const { return phase == Phase::complete; }
};

// What plans of a team are limited by.
[[nodiscard]] PlanLimits plan_limits(const Config& config, int ranks, bool oversubscribed);
[[nodiscard]] PlanInput plan_input(
    const Team& team, const CollectiveDesc& desc, const PlanLimits& limits);
[[nodiscard]] std::string explain_rings(const Schedule& schedule, const PlanInput& input);
[[nodiscard]] BlockLayout lane_layout(const Config& config, int ranks);

// Runs the blocking and non-blocking collectives of a communicator, one after the other in the
// order of the calls, with plans that are kept. Small blocks go through slots at once. For larger
// ones the ranks first show each other their buffers (which also tells that they have entered), so
// the plan needs no further entry signals. In an exchange every pair of ranks decides for itself.
class Lane {
 public:
  // block: the own lane block, owned from here on.
  Lane(Team& team, const BlockLayout& layout, std::byte* block);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // The operation before must be complete.
  void begin(LaneOp& op);
  // Moves op on until it is complete, must wait, or (Phase::mpi) must be carried by the MPI below.
  void progress(LaneOp& op);
  void complete(LaneOp& op);
  // After an error nothing is known about peers: stop all packets, keep the memory they may touch.
  void abandon();

  [[nodiscard]] std::string missing(const LaneOp& op) const;
  // What each rank that is not where this one is began last, a line each.
  [[nodiscard]] std::string history() const;
  void note_start(const CollectiveDesc& desc) { recorder_.note(desc, 0); } // of a persistent plan
  // Changes when plans were dropped or replaced, so that an address no longer means the same plan.
  [[nodiscard]] std::uint64_t plan_generation() const { return plan_generation_; }
  // A call of another rank under the same sequence number that does not fit to op, if there is one.
  [[nodiscard]] Status find_stray(const LaneOp& op) const;

 private:
  struct Key {
    std::uint64_t bytes = 0;
    int root = 0;
    Operation operation = Operation::alltoall;
    std::uint8_t bits = 0; // call_bits
    bool own_block = true;
    std::vector<std::uint64_t> sizes; // of an exchange: to and from each rank
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  struct RingEntry {
    std::vector<BufferFacts> facts;
    std::vector<PairPlan> pairs;
    Schedule schedule;
    AddressBook book;
    std::unique_ptr<RingPlan> plan;
    std::string why;
  };
  struct SlotEntry {
    SlotProgram program;
    std::string why;
  };
  // The regular call whose transfers ran last: as long as it comes again with the same offers of
  // all ranks, its packets hold.
  struct LastRings {
    RingEntry* entry = nullptr;
    const void* send = nullptr;
    void* recv = nullptr;
    Layout send_layout;
    Layout recv_layout;
    bool own_block = true;
    std::vector<Offer> offers;
  };

  Key key_of(const CollectiveDesc& desc) const;
  [[nodiscard]] bool is_last_slot(const CollectiveDesc& desc) const;
  [[nodiscard]] bool has_habit(const CollectiveDesc& desc) const;
  [[nodiscard]] bool goes_through_slots(const CollectiveDesc& desc) const;
  SlotEntry& slot_entry(const CollectiveDesc& desc);
  RingEntry& ring_entry(const LaneOp& op);
  void begin_slots(LaneOp& op);
  void begin_exchange(LaneOp& op);
  void open_transfers(LaneOp& op);
  bool boards_free(LaneOp& op);
  void post_offers(LaneOp& op);
  void complete_offer(Offer& offer, const LaneOp& op);
  bool provide_stage(const CollectiveDesc& desc, bool send_mapped);
  bool gather(LaneOp& op);
  bool agree(LaneOp& op);
  void start_rings(LaneOp& op);
  RingEntry& bound_entry(const LaneOp& op);
  [[nodiscard]] bool comes_again(const CollectiveDesc& desc) const;
  void run_transfers(LaneOp& op);
  Board& board(int rank, std::uint64_t sequence) const;
  Board& pair_board(int owner, std::uint64_t sequence, int reader) const;
  bool left_without(int rank, const LaneOp& op) const;
  Status compare_posted(int rank, const LaneOp& op) const;

  Team& team_;
  PlanLimits limits_;
  SlotChannel channel_;
  Recorder& recorder_; // in the own block
  SignalCounts counts_;
  std::uint64_t sequence_ = 0;
  std::uint64_t board_used_[2] = {0, 0};
  std::vector<std::array<std::uint64_t, 2>> pair_board_used_;
  std::vector<int> partners_; // ranks whose offers the operation under way needs
  std::byte* stage_ = nullptr;
  std::uint64_t stage_bytes_ = 0;
  bool abandoned_ = false;
  std::uint64_t plan_generation_ = 0;
  std::vector<Offer> offers_;
  std::unordered_map<Key, SlotEntry, KeyHash> slot_plans_;
  std::unordered_map<Key, RingEntry, KeyHash> ring_plans_;
  Key last_slot_key_;
  SlotEntry* last_slot_ = nullptr;
  LastRings last_rings_;
  Habits habits_;
};

} // namespace ferry::core
