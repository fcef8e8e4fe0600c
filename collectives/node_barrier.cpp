// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "collectives/nodes.hpp"

namespace ferry::core {

// One rank of each node, the leader, waits for its mates and then tells nodes at distances 1, 2, 4
// ..., each time once it has heard from as far away: after the last round it has heard of all. Its
// mates wait for that.
NodePlan plan_node_barrier(const NodeInput& input) {
  constexpr std::uint64_t kLine = 64; // a byte of its own for each message
  const NodeMap& map = *input.map;
  const int node = map.node(input.rank);
  const bool leads = map.index(input.rank) == 0;
  NodePlan plan;
  for (int distance = 1; distance < map.nodes(); distance *= 2) {
    const bool first = plan.rounds.empty();
    NodeRound round;
    round.shape = static_cast<int>(plan.rounds.size());
    round.sends_of_mates = first;
    round.writes = first ? 1 : 0;
    round.touches = 1;
    NodeShape shape;
    if (leads) {
      const int to = (node + distance) % map.nodes();
      const int from = (node - distance + map.nodes()) % map.nodes();
      shape.sends.push_back({map.member(to, 0), 0, 1});
      shape.receives.push_back({map.member(from, 0), (plan.rounds.size() + 1) * kLine, 1});
    } else if (2 * distance >= map.nodes()) {
      round.arrivals.push_back({map.member(node, 0), 0, 0, 0, 0, 0});
    }
    plan.shapes.push_back(std::move(shape));
    plan.rounds.push_back(std::move(round));
  }
  plan.stage_bytes = (plan.rounds.size() + 1) * kLine;
  plan.why = fmt::format(
      "{} nodes; one rank of each tells others in {} round{}", map.nodes(), plan.rounds.size(),
      plan.rounds.size() == 1 ? "" : "s");
  return plan;
}

} // namespace ferry::core
