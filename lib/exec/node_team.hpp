// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/bootstrap.hpp"
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

// The blocks of a call.
class DescBlocks final : public NodeBlocks {
 public:
  DescBlocks(const CollectiveDesc& desc, int rank) : desc_(desc), rank_(rank) {}
  void load(int rank, std::uint64_t skip, std::byte* to, std::uint64_t bytes) const override;
  void store(int rank, std::uint64_t skip, const std::byte* from, std::uint64_t bytes) override;
  [[nodiscard]] const CollectiveDesc& desc() const { return desc_; }

 private:
  CollectiveDesc desc_;
  int rank_;
};

// A collective over nodes with its exchanges: started once (blocking and non-blocking calls), or
// any number of times (persistent ones).
class NodeOp {
 public:
  NodeOp(
      std::shared_ptr<const NodePlan> plan, const CollectiveDesc& desc, int rank,
      NodeChannel& channel, Exchanges exchanges);
  void start();
  // Throws Failure.
  [[nodiscard]] Poll progress();
  [[nodiscard]] bool in_exchange() const { return run_.in_exchange(); }
  [[nodiscard]] const NodePlan& plan() const { return *plan_; }
  // What is missing; `rank_of` gives the rank of a member.
  [[nodiscard]] std::string missing(const std::vector<int>& members) const;

 private:
  std::shared_ptr<const NodePlan> plan_;
  DescBlocks blocks_;
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
  // Is there a plan over nodes for this call that beats the MPI below? Alike on all ranks.
  [[nodiscard]] bool takes(const CollectiveDesc& desc);
  // Collective, in the order of the calls. The operation runs after all that were made before.
  [[nodiscard]] std::shared_ptr<NodeOp> prepare(const CollectiveDesc& desc);

  // A persistent one, in two steps: the own block (null where none is needed; throws Failure when
  // there is no memory), then, with the offsets of all, the rest, which is collective.
  [[nodiscard]] std::byte* provide(const CollectiveDesc& desc);
  [[nodiscard]] std::unique_ptr<NodeHandle> link(
      const CollectiveDesc& desc, std::byte* block, const std::vector<std::uint64_t>& offsets);
  void abandon() { memory_.abandon(); }
  // Changes when plans were dropped, so that an address no longer means the same plan.
  [[nodiscard]] std::uint64_t plan_generation() const { return plan_generation_; }

 private:
  [[nodiscard]] std::vector<std::uint64_t> sizes(const CollectiveDesc& desc) const;
  [[nodiscard]] std::shared_ptr<const NodePlan> plan_of(const CollectiveDesc& desc);
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
};

} // namespace ferry::core
