// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/bootstrap.hpp"
#include "lib/exec/frame_size.hpp"
#include "lib/exec/node_blocks.hpp"
#include "lib/exec/node_run.hpp"
#include "lib/exec/set_up.hpp"

namespace ferry::core {

// Stage of one rank, and all of its block: a BlockHeader, the words and the stage.
[[nodiscard]] std::uint64_t node_stage_bytes(const Config& config);
[[nodiscard]] std::uint64_t node_block_bytes(std::uint64_t stage_bytes);

// The blocks of the ranks of a node; gives the own one back when all have left.
class NodeMemory {
 public:
  // block: the own one, owned from here on, or null on a node of one rank.
  NodeMemory(
      Team& team, const NodeMap& map, std::byte* block, const std::vector<std::uint64_t>& offsets);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;
  [[nodiscard]] NodeChannel& channel() { return *channel_; }
  // After an error peers may be anywhere in this memory: it stays.
  void abandon() { abandoned_ = true; }

 private:
  std::byte* alone_ = nullptr; // memory of a rank without mates
  std::vector<std::byte*> blocks_; // of the ranks of the node
  int me_;
  std::unique_ptr<NodeChannel> channel_;
  bool abandoned_ = false;
};

// A collective over nodes with its exchanges: started once (blocking and non-blocking calls), or
// any number of times (persistent ones).
class NodeOp {
 public:
  // framed: bytes that a frame holds, of an irregular alltoall; else 0.
  NodeOp(
      std::shared_ptr<const NodePlan> plan, const CollectiveDesc& desc, const Team& team,
      NodeChannel& channel, Exchanges exchanges, std::uint64_t framed = 0);
  NodeOp(const NodeOp&) = delete;
  NodeOp& operator=(const NodeOp&) = delete;
  void start();
  // Throws Failure.
  [[nodiscard]] Poll progress();
  [[nodiscard]] bool in_exchange() const { return run_.in_exchange(); }
  [[nodiscard]] const NodePlan& plan() const { return *plan_; }
  // Of the calls of mates, as far as known, against this one.
  [[nodiscard]] Status compare(const std::vector<int>& members) const {
    return channel_.compare(members);
  }
  [[nodiscard]] bool framed() const { return framed_ != nullptr; }
  // Once it is complete.
  [[nodiscard]] Status status() const { return framed() ? framed_->status() : Status{}; }
  // Complete, but blocks were too long for their frames, on all ranks alike.
  [[nodiscard]] bool too_long() const { return framed() && status().ok() && framed_->too_long(); }
  // Of the blocks of all ranks, of a complete one with frames.
  [[nodiscard]] std::uint64_t longest() const { return framed_->longest(); }
  // What is missing; `rank_of` gives the rank of a member.
  [[nodiscard]] std::string missing(const std::vector<int>& members) const;

 private:
  std::shared_ptr<const NodePlan> plan_;
  CollectiveDesc desc_;
  std::unique_ptr<NodeBlocks> blocks_;
  FramedBlocks* framed_ = nullptr;
  int rank_;
  NodeChannel& channel_;
  Exchanges exchanges_;
  NodeRun run_;
};

// A persistent collective over nodes: memory and exchanges of its own.
struct NodeHandle {
  std::unique_ptr<NodeMemory> memory;
  std::unique_ptr<NodeOp> op;
};

// What a communicator has for collectives over nodes.
class NodeTeam {
 public:
  NodeTeam(Team& team, Bootstrap& bootstrap, NodeResources resources);

  [[nodiscard]] const NodeMap& map() const { return map_; }
  [[nodiscard]] const std::vector<int>& mates() const;
  // Null when there is a plan over nodes for this call, else why the MPI below carries it. Alike on
  // all ranks; once for each call.
  [[nodiscard]] const std::string* refusal(const CollectiveDesc& desc);
  // After each call with frames: the longest block of all ranks.
  void note_longest(std::uint64_t bytes) { frames_.note(bytes); }
  // Why the MPI below carries a call whose frames were too short; before note_longest().
  [[nodiscard]] const std::string* why_too_long(std::uint64_t longest);
  [[nodiscard]] const NodeLimits& limits() const { return limits_; }
  // Collective, in the order of the calls. The operation runs after all that were made before.
  [[nodiscard]] std::shared_ptr<NodeOp> prepare(const CollectiveDesc& desc);

  // A persistent irregular alltoall: ranks may tell each other their longest blocks, of which the
  // longest makes its frames. Bytes that a frame holds, 0 if there is no plan with such ones.
  [[nodiscard]] bool may_frame(const CollectiveDesc& desc) const;
  [[nodiscard]] std::uint64_t frames_for(const CollectiveDesc& desc, std::uint64_t longest);

  // A persistent one, in two steps: the own block (null where none is needed; throws Failure when
  // there is no memory), then, with the offsets of all, the rest, which is collective.
  [[nodiscard]] std::byte* provide(const CollectiveDesc& desc, std::uint64_t framed);
  [[nodiscard]] std::unique_ptr<NodeHandle> link(
      const CollectiveDesc& desc, std::byte* block, const std::vector<std::uint64_t>& offsets,
      std::uint64_t framed);
  void abandon() { memory_.abandon(); }
  // Changes when plans were dropped, so that an address no longer means the same plan.
  [[nodiscard]] std::uint64_t plan_generation() const { return plan_generation_; }

 private:
  [[nodiscard]] std::string refuse(const CollectiveDesc& desc);
  [[nodiscard]] std::string refuse_alltoall(const CollectiveDesc& desc);
  [[nodiscard]] std::string refuse_long(const char* limit, std::uint64_t bytes) const;
  [[nodiscard]] const std::string* keep(const std::string& reason);
  [[nodiscard]] std::vector<std::uint64_t> sizes(const CollectiveDesc& desc) const;
  [[nodiscard]] std::shared_ptr<const NodePlan> plan_of(
      const CollectiveDesc& desc, std::uint64_t framed = 0);
  [[nodiscard]] Exchanges exchanges_of(const NodePlan& plan, NodeChannel& channel);

  struct Key {
    Operation operation;
    int root;
    std::vector<std::uint64_t> sizes;
    auto operator<=>(const Key&) const = default;
  };

  Team& team_;
  Bootstrap& bootstrap_;
  NodeMap map_;
  NodeMemory memory_;
  NodeLimits limits_;
  std::map<Key, std::shared_ptr<const NodePlan>> plans_;
  std::uint64_t plan_generation_ = 0;
  std::set<std::string> reasons_; // that were given: calls point to them
  FrameSize frames_; // of irregular alltoalls
};

} // namespace ferry::core
