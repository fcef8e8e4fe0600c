// SPDX-License-Identifier: MIT
#include "collectives/planner.hpp"

#include <algorithm>

namespace ferry::core {
namespace {

Schedule plan_alone(const PlanInput& input) {
  Schedule schedule;
  schedule.operation = input.operation;
  schedule.path = Path::local;
  schedule.queues.push_back({0, {}});
  const std::uint64_t bytes = input.irregular() ? input.pairs[0].send_bytes : input.block_bytes;
  const bool copies = input.own_block && !input.in_place && input.operation != Operation::broadcast;
  if (copies && bytes > 0) {
    Step step;
    step.to = {Buffer::recv, 0, 0, 0};
    step.from = {Buffer::send, 0, 0, 0};
    step.bytes = bytes;
    schedule.queues.front().steps.push_back(step);
  }
  schedule.why = "one rank: the own block only";
  return schedule;
}

} // namespace

bool fits_slots(const PlanInput& input) {
  if (input.limits.slot_bytes == 0 || input.block_bytes > input.limits.slot_bytes) return false;
  if (input.block_bytes <= input.limits.direct_bytes || input.facts.empty()) return true;
  // In place blocks need a second copy anyway.
  if (input.operation == Operation::alltoall && input.in_place) return true;
  // A root receives nothing, and lets its readers copy side by side.
  const bool broadcast = input.operation == Operation::broadcast;
  for (std::size_t rank = 0; rank < input.facts.size(); ++rank) {
    const BufferFacts& facts = input.facts[rank];
    const bool root = broadcast && static_cast<int>(rank) == input.root;
    if (!(root ? facts.send_mapped : facts.recv_mapped)) return true;
  }
  return false;
}

bool pair_fits_slots(const PairPlan& pair, const PlanLimits& limits) {
  return limits.slot_bytes > 0 && std::max(pair.send_bytes, pair.recv_bytes) <= limits.slot_bytes;
}

// Memory that can only be attached goes through the stage to readers with gaps in their blocks.
bool may_stage(const PlanInput& input, const BufferFacts& mine) {
  if (input.in_place && input.operation == Operation::alltoall) return true;
  if (input.operation == Operation::broadcast && input.rank != input.root) return false;
  return !mine.send_mapped;
}

std::uint64_t stage_capacity(Operation operation, int ranks, const PlanLimits& limits) {
  const bool shared = operation == Operation::allgather || operation == Operation::broadcast;
  const auto regions = shared ? 1 : static_cast<std::uint64_t>(ranks);
  return regions * static_cast<std::uint64_t>(limits.stage_depth) * limits.stage_bytes;
}

Schedule plan_collective(const PlanInput& input) {
  if (input.ranks == 1) return plan_alone(input);
  if (input.irregular()) return plan_exchange(input);
  switch (input.operation) {
    case Operation::alltoall:
      return plan_alltoall(input);
    case Operation::barrier: // an allgather of nothing
    case Operation::allgather:
      return plan_allgather(input);
    case Operation::broadcast:
      return plan_broadcast(input);
    default:
      return {}; // gather and scatter are exchanges, reductions are made of others
  }
}

} // namespace ferry::core
