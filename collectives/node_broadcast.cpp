// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <algorithm>

#include "collectives/nodes.hpp"

namespace ferry::core {
namespace {

// The nodes in the order of the way, beginning with the root's; one rank of each takes part.
class Way {
 public:
  explicit Way(const NodeInput& input)
      : map_(*input.map), root_(input.root), first_(map_.node(input.root)) {}

  [[nodiscard]] int nodes() const { return map_.nodes(); }
  [[nodiscard]] int position(int rank) const {
    return (map_.node(rank) - first_ + map_.nodes()) % map_.nodes();
  }
  [[nodiscard]] int leader(int at) const { // index within its node
    return map_.index(root_) % map_.size(node(at));
  }
  [[nodiscard]] int rank(int at) const { return map_.member(node(at), leader(at)); }

 private:
  [[nodiscard]] int node(int at) const { return (first_ + at) % map_.nodes(); }
  const NodeMap& map_;
  int root_;
  int first_;
};

// Everybody of a node but the one that has the bytes drains them out of its stage.
void drain(const NodeInput& input, const Way& way, const NodeCopy& copy, NodeRound& round) {
  const int at = way.position(input.rank);
  if (input.rank == input.root) {
    round.fills.push_back(copy);
  } else {
    (at == 0 ? round.locals : round.arrivals).push_back(copy);
  }
}

// The message goes from node to node, piece behind piece, so that all wires are busy at once.
class Chain {
 public:
  Chain(const NodeInput& input, const Way& way, std::uint64_t piece)
      : input_(input),
        way_(way),
        piece_(piece),
        pieces_(static_cast<int>((input.block(0) + piece - 1) / piece)),
        at_(way.position(input.rank)),
        leads_(way.rank(at_) == input.rank) {}

  [[nodiscard]] NodePlan plan() const {
    NodePlan plan;
    for (int t = 0; t < pieces_ + way_.nodes() - 2; ++t) add_round(t, plan);
    plan.stage_bytes = region() * kNodeRegions;
    return plan;
  }

 private:
  [[nodiscard]] std::uint64_t region() const { return (piece_ + 63) / 64 * 64; }
  [[nodiscard]] std::uint64_t place(int round) const {
    return static_cast<std::uint64_t>((round + kNodeRegions) % kNodeRegions) * region();
  }
  [[nodiscard]] std::uint64_t length(int number) const {
    const std::uint64_t skip = static_cast<std::uint64_t>(number) * piece_;
    return number < 0 || number >= pieces_ ? 0 : std::min(piece_, input_.block(0) - skip);
  }
  // The piece that a node gets in a round, the root's from its buffer, and the one it passes on.
  [[nodiscard]] static int got(int at, int t) { return at == 0 ? t : t - at + 1; }
  [[nodiscard]] static int passed(int at, int t) { return t - at; }
  // On every node, so that all ranks agree.
  [[nodiscard]] bool same_lengths(int a, int b) const {
    for (int at = 0; at < way_.nodes(); ++at) {
      if (length(got(at, a)) != length(got(at, b))) return false;
      if (length(passed(at, a)) != length(passed(at, b))) return false;
    }
    return true;
  }

  void add_round(int t, NodePlan& plan) const {
    const auto bit = [](int round) { return 1u << ((round + kNodeRegions) % kNodeRegions); };
    NodeRound round;
    round.writes = bit(t);
    round.touches = bit(t) | bit(t - 1);
    if (const int piece = got(at_, t); length(piece) > 0) {
      const std::uint64_t skip = static_cast<std::uint64_t>(piece) * piece_;
      const int leader = way_.leader(at_);
      drain(input_, way_, {input_.root, skip, leader, place(t), length(piece), leader}, round);
    }
    if (t >= kNodeRegions && same_lengths(t, t - kNodeRegions)) {
      round.shape = plan.rounds[static_cast<std::size_t>(t - kNodeRegions)].shape;
    } else {
      round.shape = static_cast<int>(plan.shapes.size());
      plan.shapes.push_back(shape(t));
    }
    plan.rounds.push_back(std::move(round));
  }

  [[nodiscard]] NodeShape shape(int t) const {
    NodeShape shape;
    if (!leads_) return shape;
    const std::uint64_t in = length(got(at_, t));
    const std::uint64_t out = length(passed(at_, t));
    if (at_ > 0 && in > 0) shape.receives.push_back({way_.rank(at_ - 1), place(t), in});
    if (at_ + 1 < way_.nodes() && out > 0) {
      shape.sends.push_back({way_.rank(at_ + 1), place(at_ == 0 ? t : t - 1), out});
    }
    return shape;
  }

  const NodeInput& input_;
  const Way& way_;
  std::uint64_t piece_;
  int pieces_;
  int at_;
  bool leads_;
};

// In each round every node that has the message passes it on.
NodePlan plan_tree(const NodeInput& input, const Way& way) {
  NodePlan plan;
  const std::uint64_t bytes = input.block(0);
  const int at = way.position(input.rank);
  const bool leads = way.rank(at) == input.rank;
  for (int have = 1; have < way.nodes(); have *= 2) {
    NodeRound round;
    round.shape = static_cast<int>(plan.rounds.size());
    round.writes = plan.rounds.empty() ? 1 : 0;
    round.touches = 1;
    NodeShape shape;
    const NodeCopy copy{input.root, 0, way.leader(at), 0, bytes, way.leader(at)};
    const bool gets = at == 0 ? have == 1 : at >= have && at < 2 * have;
    if (gets) drain(input, way, copy, round);
    if (leads && at > 0 && gets) shape.receives.push_back({way.rank(at - have), 0, bytes});
    if (leads && at < have && at + have < way.nodes()) {
      shape.sends.push_back({way.rank(at + have), 0, bytes});
    }
    plan.shapes.push_back(std::move(shape));
    plan.rounds.push_back(std::move(round));
  }
  plan.stage_bytes = (bytes + 63) / 64 * 64;
  return plan;
}

} // namespace

// The message crosses to each node once: in a tree of nodes when it is one piece, in a chain of
// pieces when it is longer. The ranks of a node read it out of one stage.
NodePlan plan_node_broadcast(const NodeInput& input) {
  const std::uint64_t bytes = input.block(0);
  if (bytes == 0) return {};
  const Way way(input);
  const std::uint64_t piece =
      std::min(input.limits.chunk_bytes, input.limits.stage_bytes / kNodeRegions / 64 * 64);
  const bool tree = bytes <= piece;
  NodePlan plan = tree ? plan_tree(input, way) : Chain(input, way, piece).plan();
  plan.why = fmt::format(
      "{} nodes; {} bytes cross to each once, {} in {} rounds", way.nodes(), bytes,
      tree ? "in a tree" : "in a chain of pieces", plan.rounds.size());
  return plan;
}

} // namespace ferry::core
