// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <algorithm>

#include "collectives/nodes.hpp"

namespace ferry::core {
namespace {

// A region of the stage of one rank, counted in slots of one block (or a piece of it): one for each
// rank of the node, then for each node that it leads what goes there, then what comes from there.
// Both are ordered by sender and receiver.
class Areas {
 public:
  Areas(const NodeMap& map, int rank) : map_(map), node_(map.node(rank)), index_(map.index(rank)) {}

  [[nodiscard]] bool leads(int other) const {
    return other != node_ && node_leader(map_, node_, other) == index_;
  }
  [[nodiscard]] std::uint64_t pair(int other) const {
    return static_cast<std::uint64_t>(map_.size(node_)) *
           static_cast<std::uint64_t>(map_.size(other));
  }
  [[nodiscard]] std::uint64_t out(int other) const {
    auto slots = static_cast<std::uint64_t>(map_.size(node_));
    for (int node = 0; node < other; ++node) slots += leads(node) ? pair(node) : 0;
    return slots;
  }
  [[nodiscard]] std::uint64_t in(int other) const { return out(other) + out(map_.nodes()) - own(); }
  [[nodiscard]] std::uint64_t all() const { return 2 * out(map_.nodes()) - own(); }

 private:
  [[nodiscard]] std::uint64_t own() const { return static_cast<std::uint64_t>(map_.size(node_)); }
  const NodeMap& map_;
  int node_;
  int index_;
};

std::uint64_t most_slots(const NodeMap& map) {
  std::uint64_t most = 0;
  for (int rank = 0; rank < map.ranks(); ++rank) most = std::max(most, Areas(map, rank).all());
  return most;
}

// The rounds of one rank, one for each piece of all blocks.
class Builder {
 public:
  Builder(const NodeInput& input, std::uint64_t piece, std::uint64_t region)
      : input_(input),
        map_(*input.map),
        node_(map_.node(input.rank)),
        me_(static_cast<std::uint64_t>(map_.index(input.rank))),
        piece_(piece),
        region_(region) {}

  void add_round(std::uint64_t skip, std::uint64_t bytes, NodePlan& plan) const {
    const int number = static_cast<int>(plan.rounds.size()) % kNodeRegions;
    const std::uint64_t base = static_cast<std::uint64_t>(number) * region_;
    NodeRound round;
    round.shape = number;
    round.sends_of_mates = true;
    round.writes = round.touches = 1u << number;
    NodeShape shape;
    const auto at = [&](std::uint64_t slot) { return base + slot * piece_; };
    add_mates(skip, bytes, at, round);
    for (int other = 0; other < map_.nodes(); ++other) {
      if (other != node_) add_pair(other, skip, bytes, at, round, shape);
    }
    // Slots keep their places when the last pieces are shorter.
    if (plan.shapes.size() < kNodeRegions) plan.shapes.push_back(std::move(shape));
    plan.rounds.push_back(std::move(round));
  }

 private:
  template <class At>
  void add_mates(std::uint64_t skip, std::uint64_t bytes, const At& at, NodeRound& round) const {
    for (int mate = 0; mate < map_.size(node_); ++mate) {
      const int rank = map_.member(node_, mate);
      if (rank == input_.rank) continue;
      round.fills.push_back({rank, skip, mate, at(me_), bytes});
      round.locals.push_back(
          {rank, skip, static_cast<int>(me_), at(static_cast<std::uint64_t>(mate)), bytes, mate});
    }
  }

  template <class At>
  void add_pair(
      int other, std::uint64_t skip, std::uint64_t bytes, const At& at, NodeRound& round,
      NodeShape& shape) const {
    const int leader = node_leader(map_, node_, other);
    const Areas areas(map_, map_.member(node_, leader));
    const auto mates = static_cast<std::uint64_t>(map_.size(node_));
    const auto others = static_cast<std::uint64_t>(map_.size(other));
    for (std::uint64_t k = 0; k < others; ++k) {
      const int rank = map_.member(other, static_cast<int>(k));
      round.fills.push_back({rank, skip, leader, at(areas.out(other) + me_ * others + k), bytes});
      round.arrivals.push_back(
          {rank, skip, leader, at(areas.in(other) + k * mates + me_), bytes, leader});
    }
    if (static_cast<int>(me_) != leader) return;
    const int peer = map_.member(other, node_leader(map_, other, node_));
    const std::uint64_t whole = areas.pair(other) * piece_;
    shape.sends.push_back({peer, at(areas.out(other)), whole});
    shape.receives.push_back({peer, at(areas.in(other)), whole});
  }

  const NodeInput& input_;
  const NodeMap& map_;
  int node_;
  std::uint64_t me_;
  std::uint64_t piece_; // bytes of a slot
  std::uint64_t region_; // bytes of a region
};

} // namespace

// Aggregated: of each pair of nodes one rank of either side talks to the other, so that a node
// sends nodes - 1 messages in all. Each byte is copied into a stage once and out of one once.
NodePlan plan_node_alltoall(const NodeInput& input) {
  const NodeMap& map = *input.map;
  const std::uint64_t block = input.longest();
  const std::uint64_t slots = most_slots(map);
  const std::uint64_t room = input.limits.stage_bytes / kNodeRegions / 64 * 64;
  const std::uint64_t most = std::max<std::uint64_t>(room / slots, 1);
  NodePlan plan;
  if (block == 0) return plan;
  const std::uint64_t pieces = (block + most - 1) / most;
  const std::uint64_t piece = (block + pieces - 1) / pieces;
  const std::uint64_t region = (slots * piece + 63) / 64 * 64;
  const Builder builder(input, piece, region);
  for (std::uint64_t skip = 0; skip < block; skip += piece) {
    builder.add_round(skip, std::min(piece, block - skip), plan);
  }
  plan.stage_bytes = region * std::min<std::uint64_t>(plan.rounds.size(), kNodeRegions);
  plan.why = fmt::format(
      "{} nodes; {} bytes a block, aggregated by node in {} round{}", map.nodes(), block,
      plan.rounds.size(), plan.rounds.size() == 1 ? "" : "s");
  return plan;
}

} // namespace ferry::core
