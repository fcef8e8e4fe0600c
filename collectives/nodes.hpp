// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/table.hpp"
#include "lib/schedule/collective.hpp"
#include "lib/topology/nodes.hpp"

// Plans for ranks on several nodes. Each rank provides a stage in memory that its node shares. A
// round has three parts: ranks fill stages of their node with bytes of their send blocks; an
// exchange among all ranks moves parts of stages to stages of other nodes; ranks drain stages of
// their node into their receive blocks. Parts of neighbouring rounds overlap.
namespace ferry::core {

// Bytes between a block of the user and the stage of a rank of this node. `block` is the rank that
// the block is for (fill) or from (drain); `skip` bytes of it come before these. Members are
// counted within the node.
struct NodeCopy {
  int block = 0;
  std::uint64_t skip = 0;
  int member = 0; // whose stage
  std::uint64_t offset = 0; // in it
  std::uint64_t bytes = 0; // drains: 0 only waits
  int after = 0; // drains: the member whose fill or exchange must be over
};

// Bytes of the own stage that go to, or come from, a rank of another node.
struct NodePart {
  int peer = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// What one rank sends and receives in an exchange. Every rank has as many shapes as all others, so
// that the exchanges can be set up together.
struct NodeShape {
  std::vector<NodePart> sends;
  std::vector<NodePart> receives;
};

struct NodeRound {
  std::vector<NodeCopy> fills;
  int shape = 0;
  bool sends_of_mates = false; // what is sent was filled by all ranks of the node, not by this one
  std::vector<NodeCopy> locals; // drains of what mates have filled
  std::vector<NodeCopy> arrivals; // drains of what the exchange brought, grouped by member
  std::uint32_t writes = 0; // regions (bits) that must be free before
  std::uint32_t touches = 0; // regions that are in use until this round is over
};

// What one rank does; all ranks have the same number of rounds and shapes, and regions alike.
struct NodePlan {
  std::vector<NodeShape> shapes;
  std::vector<NodeRound> rounds;
  std::uint64_t stage_bytes = 0; // alike on all ranks
  std::string why;
};

inline constexpr int kNodeRegions = 3; // of a stage, used in turn

// From the table of the machine.
struct NodeLimits {
  std::uint64_t stage_bytes = 0; // stage of one rank
  std::uint64_t alltoall_bytes = 0; // largest block that is aggregated by node
  std::uint64_t allgather_bytes = 0; // largest block that is aggregated by node
  std::uint64_t spread_bytes = 0; // largest block of an allgather
  std::uint64_t chunk_bytes = 0; // of pipelines
  std::uint64_t reduce_bytes = 0; // largest operand
  std::uint64_t exchange_bytes = 0; // largest block of an irregular alltoall
};
[[nodiscard]] NodeLimits node_limits(const Table& table, std::uint64_t stage_bytes);

// All that a planner over nodes may look at; the same on every rank but for `rank`.
struct NodeInput {
  Operation operation = Operation::alltoall;
  int rank = 0;
  const NodeMap* map = nullptr;
  int root = 0;
  std::span<const std::uint64_t> blocks; // bytes of each rank's block; one entry: all alike
  NodeLimits limits;

  [[nodiscard]] std::uint64_t block(int of) const {
    return blocks.size() == 1 ? blocks[0] : blocks[static_cast<std::size_t>(of)];
  }
  [[nodiscard]] std::uint64_t longest() const;
};

// Pure. Own blocks are not part of a plan.
[[nodiscard]] NodePlan plan_nodes(const NodeInput& input);
[[nodiscard]] NodePlan plan_node_alltoall(const NodeInput& input);
[[nodiscard]] NodePlan plan_node_allgather(const NodeInput& input);
[[nodiscard]] NodePlan plan_node_broadcast(const NodeInput& input);
[[nodiscard]] NodePlan plan_node_gather(const NodeInput& input);
[[nodiscard]] NodePlan plan_node_barrier(const NodeInput& input);

// The member of `node` that talks to `other` when bytes are aggregated: with as many nodes as
// members each has one.
[[nodiscard]] int node_leader(const NodeMap& map, int node, int other);

} // namespace ferry::core
