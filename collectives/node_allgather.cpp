// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <algorithm>

#include "collectives/nodes.hpp"

namespace ferry::core {
namespace {

// Where a block from another node arrives in this one.
struct Arrival {
  int member = 0;
  std::uint64_t offset = 0; // in the member's region
};

// A piece of every block: bytes [skip, skip + bytes), or what there is of them. A region of a stage
// holds the own piece, then those of the node if its rank leads, then those that arrive.
class Piece {
 public:
  Piece(const NodeInput& input, bool aggregated, std::uint64_t skip, std::uint64_t bytes)
      : input_(input), map_(*input.map), aggregated_(aggregated), skip_(skip), bytes_(bytes) {}

  [[nodiscard]] std::uint64_t skip() const { return skip_; }
  [[nodiscard]] std::uint64_t of(int rank) const {
    const std::uint64_t block = input_.block(rank);
    return block > skip_ ? std::min(bytes_, block - skip_) : 0;
  }
  [[nodiscard]] std::uint64_t of_node(int node) const {
    std::uint64_t sum = 0;
    for (int rank : map_.members[static_cast<std::size_t>(node)]) sum += of(rank);
    return sum;
  }
  [[nodiscard]] std::uint64_t out_begin() const { return bytes_; }
  // The member of `node` that receives the block of a rank of another one.
  [[nodiscard]] int receiver(int rank, int node) const {
    if (aggregated_) return node_leader(map_, node, map_.node(rank));
    return (map_.index(rank) + map_.node(rank)) % map_.size(node);
  }
  [[nodiscard]] bool leads(int node, int member) const {
    for (int other = 0; aggregated_ && other < map_.nodes(); ++other) {
      if (other != node && node_leader(map_, node, other) == member) return true;
    }
    return false;
  }
  // Of the block of each rank of other nodes; *region grows to what a region of `node` takes.
  [[nodiscard]] std::vector<Arrival> arrivals(int node, std::uint64_t* region) const {
    std::vector<std::uint64_t> end;
    for (int member = 0; member < map_.size(node); ++member) {
      end.push_back(bytes_ + (leads(node, member) ? of_node(node) : 0));
    }
    std::vector<Arrival> all(static_cast<std::size_t>(map_.ranks()));
    for (const auto& ranks : map_.members) {
      for (int rank : ranks) {
        if (map_.node(rank) == node) continue;
        Arrival& arrival = all[static_cast<std::size_t>(rank)];
        arrival.member = receiver(rank, node);
        arrival.offset = end[static_cast<std::size_t>(arrival.member)];
        end[static_cast<std::size_t>(arrival.member)] += of(rank);
      }
    }
    *region = std::max(*region, *std::max_element(end.begin(), end.end()));
    return all;
  }
  [[nodiscard]] bool same_sizes(const Piece& other) const {
    for (int rank = 0; rank < map_.ranks(); ++rank) {
      if (of(rank) != other.of(rank)) return false;
    }
    return true;
  }

 private:
  const NodeInput& input_;
  const NodeMap& map_;
  bool aggregated_;
  std::uint64_t skip_;
  std::uint64_t bytes_;
};

std::uint64_t region_of(const NodeMap& map, const Piece& piece) {
  std::uint64_t region = 0;
  for (int node = 0; node < map.nodes(); ++node) static_cast<void>(piece.arrivals(node, &region));
  return (region + 63) / 64 * 64;
}

class Builder {
 public:
  Builder(const NodeInput& input, bool aggregated, std::uint64_t region)
      : input_(input),
        map_(*input.map),
        node_(map_.node(input.rank)),
        me_(map_.index(input.rank)),
        aggregated_(aggregated),
        region_(region) {}

  // `base`: of the region.
  [[nodiscard]] NodeRound round(const Piece& piece, std::uint64_t base) const {
    NodeRound round;
    const auto add = [&](std::vector<NodeCopy>& list, int block, int member, std::uint64_t offset) {
      const std::uint64_t bytes = piece.of(block);
      if (bytes > 0) list.push_back({block, piece.skip(), member, base + offset, bytes, member});
    };
    add(round.fills, input_.rank, me_, 0);
    std::uint64_t before = piece.out_begin(); // what ranks before this one contribute
    for (int mate = 0; mate < me_; ++mate) before += piece.of(map_.member(node_, mate));
    for (int mate = 0; mate < map_.size(node_); ++mate) {
      if (piece.leads(node_, mate)) add(round.fills, input_.rank, mate, before);
      if (mate != me_) add(round.locals, map_.member(node_, mate), mate, 0);
    }
    std::uint64_t unused = 0;
    const auto arrivals = piece.arrivals(node_, &unused);
    for (int rank = 0; rank < map_.ranks(); ++rank) {
      const Arrival& arrival = arrivals[static_cast<std::size_t>(rank)];
      if (map_.node(rank) != node_) add(round.arrivals, rank, arrival.member, arrival.offset);
    }
    std::stable_sort(
        round.arrivals.begin(), round.arrivals.end(),
        [](const NodeCopy& a, const NodeCopy& b) { return a.member < b.member; });
    round.sends_of_mates = aggregated_;
    return round;
  }

  [[nodiscard]] NodeShape shape(const Piece& piece, std::uint64_t base) const {
    NodeShape shape;
    const auto add = [&](std::vector<NodePart>& list, int peer, std::uint64_t offset,
                         std::uint64_t bytes) {
      if (bytes > 0) list.push_back({peer, base + offset, bytes});
    };
    std::uint64_t unused = 0;
    const auto arrivals = piece.arrivals(node_, &unused);
    for (int other = 0; other < map_.nodes(); ++other) {
      if (other == node_) continue;
      const auto& ranks = map_.members[static_cast<std::size_t>(other)];
      if (!aggregated_) {
        add(shape.sends, map_.member(other, piece.receiver(input_.rank, other)), 0,
            piece.of(input_.rank));
        for (int rank : ranks) {
          const Arrival& arrival = arrivals[static_cast<std::size_t>(rank)];
          if (arrival.member == me_) add(shape.receives, rank, arrival.offset, piece.of(rank));
        }
      } else if (node_leader(map_, node_, other) == me_) {
        const int peer = map_.member(other, node_leader(map_, other, node_));
        add(shape.sends, peer, piece.out_begin(), piece.of_node(node_));
        add(shape.receives, peer, arrivals[static_cast<std::size_t>(ranks.front())].offset,
            piece.of_node(other));
      }
    }
    return shape;
  }

  void add_round(const Piece& piece, const Piece* before, NodePlan& plan) const {
    const std::size_t number = plan.rounds.size() % kNodeRegions;
    const std::uint64_t base = number * region_;
    NodeRound next = round(piece, base);
    next.writes = next.touches = 1u << number;
    if (before != nullptr && piece.same_sizes(*before)) {
      next.shape = plan.rounds[plan.rounds.size() - kNodeRegions].shape;
    } else {
      next.shape = static_cast<int>(plan.shapes.size());
      plan.shapes.push_back(shape(piece, base));
    }
    plan.rounds.push_back(std::move(next));
  }

 private:
  const NodeInput& input_;
  const NodeMap& map_;
  int node_;
  int me_;
  bool aggregated_;
  std::uint64_t region_;
};

} // namespace

// Each block crosses to each other node once. Small ones are aggregated: one message for each pair
// of nodes. Larger ones go from their rank to one rank of each node, receivers in turn, piece by
// piece, so that the copies of one piece run beside the exchange of the next.
NodePlan plan_node_allgather(const NodeInput& input) {
  const std::uint64_t longest = input.longest();
  NodePlan plan;
  if (longest == 0) return plan;
  const bool aggregated = longest <= input.limits.allgather_bytes;
  std::uint64_t bytes = std::min(longest, input.limits.chunk_bytes);
  std::uint64_t region = region_of(*input.map, {input, aggregated, 0, bytes});
  while (bytes > 1 && region * kNodeRegions > input.limits.stage_bytes) {
    bytes = (bytes + 1) / 2;
    region = region_of(*input.map, {input, aggregated, 0, bytes});
  }
  const Builder builder(input, aggregated, region);
  std::vector<Piece> pieces;
  for (std::uint64_t skip = 0; skip < longest; skip += bytes) {
    pieces.emplace_back(input, aggregated, skip, bytes);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    builder.add_round(pieces[i], i < kNodeRegions ? nullptr : &pieces[i - kNodeRegions], plan);
  }
  plan.stage_bytes = region * std::min<std::uint64_t>(plan.rounds.size(), kNodeRegions);
  plan.why = fmt::format(
      "{} nodes; up to {} bytes a block, {} in {} round{}", input.map->nodes(), longest,
      aggregated ? "aggregated by node" : "once to each node", plan.rounds.size(),
      plan.rounds.size() == 1 ? "" : "s");
  return plan;
}

} // namespace ferry::core
