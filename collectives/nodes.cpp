// SPDX-License-Identifier: MIT
#include "collectives/nodes.hpp"

#include <algorithm>

namespace ferry::core {

std::uint64_t NodeInput::longest() const {
  return *std::max_element(blocks.begin(), blocks.end());
}

int node_leader(const NodeMap& map, int node, int other) {
  const int distance = (other - node + map.nodes()) % map.nodes();
  return (distance + map.nodes() - 1) % map.nodes() % map.size(node);
}

NodePlan plan_nodes(const NodeInput& input) {
  switch (input.operation) {
    case Operation::alltoall:
      return plan_node_alltoall(input);
    case Operation::allgather:
      return plan_node_allgather(input);
    case Operation::broadcast:
      return plan_node_broadcast(input);
    default:
      return {};
  }
}

} // namespace ferry::core
