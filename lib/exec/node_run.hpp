// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/nodes.hpp"
#include "lib/base/exchange.hpp"
#include "lib/base/wait.hpp"
#include "lib/exec/slot_channel.hpp"

namespace ferry::core {

inline constexpr std::size_t kNodeCalls = 4;

// What a rank calls, for comparison: a run has the same number on all ranks of the node.
struct NodeCall {
  std::atomic<std::uint64_t> run; // 0 while the others change
  std::atomic<std::uint64_t> what; // operation, place and root
  std::atomic<std::uint64_t> bytes;
};

// Head of the memory that a rank shares with its node for collectives over nodes; the stage
// follows. The owner writes; each word is the number of the last round of which a part is over.
struct NodeWords {
  alignas(64) std::atomic<std::uint64_t> filled; // its bytes are in all stages they go to
  alignas(64) std::atomic<std::uint64_t> arrived; // its exchange is over, both ways
  alignas(64) std::atomic<std::uint64_t> drained; // it has read all that it reads out of stages
  alignas(64) NodeCall calls[kNodeCalls]; // of the last runs, in turn
};

// The blocks of a call, as bytes without gaps.
class NodeBlocks {
 public:
  NodeBlocks() = default;
  NodeBlocks(const NodeBlocks&) = delete;
  NodeBlocks& operator=(const NodeBlocks&) = delete;
  virtual ~NodeBlocks() = default;
  // Bytes [skip, skip + bytes) of the block for a rank, of the block from a rank.
  virtual void load(int rank, std::uint64_t skip, std::byte* to, std::uint64_t bytes) const = 0;
  virtual void store(int rank, std::uint64_t skip, const std::byte* from, std::uint64_t bytes) = 0;
};

// The stages of a node as one of its ranks sees them. Rounds of all runs on it have numbers 1, 2, 3
// ..., alike on all ranks of the node, since they make the same runs in the same order.
class NodeChannel {
 public:
  // `wake(member)`: a word has changed that the member may sleep on.
  NodeChannel(std::vector<std::byte*> memory, int me, std::function<void(int member)> wake);
  [[nodiscard]] static std::uint64_t bytes_for(std::uint64_t stage_bytes) {
    return sizeof(NodeWords) + stage_bytes;
  }
  [[nodiscard]] int me() const { return me_; }
  [[nodiscard]] int members() const { return static_cast<int>(memory_.size()); }
  [[nodiscard]] NodeWords& words(int member) const;
  [[nodiscard]] std::byte* stage(int member) const;
  void tell_others() const;
  // The call of the run that begins next, to be seen by mates.
  void announce(const CallShape& shape);
  // Do the calls of mates under the number of the run under way fit to this one? As far as they are
  // known by now; `rank_of` gives the rank of a member.
  [[nodiscard]] Status compare(const std::vector<int>& rank_of) const;

 private:
  friend class NodeRun;
  std::vector<std::byte*> memory_;
  int me_;
  std::function<void(int)> wake_;
  std::uint64_t rounds_ = 0; // of all runs that have begun
  std::uint64_t runs_ = 0;
  CallShape shape_; // of the last run
  std::uint64_t last_use_[kNodeRegions] = {}; // round
};

// The exchanges of a plan, one for each shape, over the stage of this rank.
using Exchanges = std::vector<std::unique_ptr<Exchange>>;
using Prepare = std::function<std::unique_ptr<Exchange>(
    const std::vector<ExchangePart>&, const std::vector<ExchangePart>&)>;
[[nodiscard]] Exchanges prepare_shapes(
    const NodePlan& plan, std::byte* stage, const Prepare& prepare);

// One execution of a plan. Fills, exchanges and drains each go through the rounds in order, and
// beside each other as far as the stages allow.
class NodeRun {
 public:
  // All stay alive until progress() has returned ready. Runs of a channel do not overlap.
  void begin(
      const NodePlan& plan, NodeChannel& channel, NodeBlocks& blocks, const Exchanges& exchanges);
  // Throws Failure of an exchange.
  [[nodiscard]] Poll progress();
  // What is missing, for people: a phrase, and the index of a member of the node or -1.
  [[nodiscard]] const char* step() const { return step_; }
  [[nodiscard]] int waits_for() const { return waits_for_; }
  // The ranks of other nodes whose bytes are missing.
  [[nodiscard]] std::vector<int> senders() const;
  // It waits for the network, so that no rank of this node could wake it.
  [[nodiscard]] bool in_exchange() const { return exchanging_; }

 private:
  [[nodiscard]] std::uint64_t number(std::size_t round) const { return base_ + round + 1; }
  bool all_reached(std::atomic<std::uint64_t> NodeWords::*word, std::uint64_t round);
  bool fill();
  bool exchange();
  bool drain();
  bool drain_list(
      const std::vector<NodeCopy>& copies, std::size_t& next,
      std::atomic<std::uint64_t> NodeWords::*word);

  const NodePlan* plan_ = nullptr;
  NodeChannel* channel_ = nullptr;
  NodeBlocks* blocks_ = nullptr;
  const Exchanges* exchanges_ = nullptr;
  std::uint64_t base_ = 0;
  std::vector<std::uint64_t> free_; // the round that must be over before a round may write
  std::size_t filled_ = 0;
  std::size_t exchanged_ = 0;
  std::size_t drained_ = 0;
  std::size_t next_local_ = 0;
  std::size_t next_arrival_ = 0;
  bool exchanging_ = false;
  const char* step_ = "";
  int waits_for_ = -1;
};

} // namespace ferry::core
