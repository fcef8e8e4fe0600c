// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "collectives/nodes.hpp"

namespace ferry::core {

// Ranks of the root's node put their blocks into its stage; those of each other node into that of
// their first rank, which sends all of them to the root in one message.
NodePlan plan_node_gather(const NodeInput& input) {
  const std::uint64_t block = input.longest();
  if (block == 0) return {};
  const NodeMap& map = *input.map;
  const int node = map.node(input.rank);
  const int goal = map.node(input.root);
  const auto me = static_cast<std::uint64_t>(map.index(input.rank));
  NodePlan plan;
  NodeRound round;
  round.sends_of_mates = true;
  round.writes = round.touches = 1;
  NodeShape shape;
  const bool is_root = input.rank == input.root;
  if (!is_root) {
    const int leader = node == goal ? map.index(input.root) : 0;
    round.fills.push_back({input.root, 0, leader, me * block, block});
    const auto all = static_cast<std::uint64_t>(map.size(node)) * block;
    if (node != goal && me == 0) shape.sends.push_back({input.root, 0, all});
  }
  std::uint64_t at = 0; // of a node's blocks in the root's stage, those of its own first
  for (int step = 0; is_root && step < map.nodes(); ++step) {
    const int from = (goal + step) % map.nodes();
    const auto& ranks = map.members[static_cast<std::size_t>(from)];
    const auto all = ranks.size() * block;
    if (from != goal) shape.receives.push_back({ranks.front(), at, all});
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] == input.root) continue;
      const int after = from == goal ? static_cast<int>(i) : static_cast<int>(me);
      (from == goal ? round.locals : round.arrivals)
          .push_back({ranks[i], 0, static_cast<int>(me), at + i * block, block, after});
    }
    at += all;
  }
  plan.shapes.push_back(std::move(shape));
  plan.rounds.push_back(std::move(round));
  plan.stage_bytes = (static_cast<std::uint64_t>(map.ranks()) * block + 63) / 64 * 64;
  plan.why =
      fmt::format("{} nodes; {} bytes a block, each node's in one message", map.nodes(), block);
  return plan;
}

} // namespace ferry::core
