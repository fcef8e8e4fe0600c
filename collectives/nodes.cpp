// SPDX-License-Identifier: MIT
#include "collectives/nodes.hpp"

#include <algorithm>

namespace ferry::core {

NodeLimits node_limits(const Table& table, std::uint64_t stage_bytes) {
  NodeLimits limits;
  limits.stage_bytes = stage_bytes;
  limits.alltoall_bytes = table.node_alltoall_bytes;
  limits.allgather_bytes = table.node_allgather_bytes;
  limits.spread_bytes = table.node_spread_bytes;
  limits.chunk_bytes = table.node_chunk_bytes;
  limits.reduce_bytes = table.node_reduce_bytes;
  limits.exchange_bytes = table.node_exchange_bytes;
  return limits;
}

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
    case Operation::gather:
      return plan_node_gather(input);
    case Operation::barrier:
      return plan_node_barrier(input);
    default:
      return {};
  }
}

} // namespace ferry::core
