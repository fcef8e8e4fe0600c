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
  const bool copies = !input.in_place && input.operation != Operation::broadcast;
  if (copies && input.block_bytes > 0) {
    Step step;
    step.to = {Buffer::recv, 0, 0};
    step.from = {Buffer::send, 0, 0};
    step.bytes = input.block_bytes;
    schedule.queues.front().steps.push_back(step);
  }
  schedule.why = "one rank: the own block only";
  return schedule;
}

} // namespace

bool fits_slots(const PlanInput& input) {
  if (input.limits.slot_bytes == 0 || input.block_bytes > input.limits.slot_bytes) return false;
  if (input.block_bytes <= input.limits.direct_bytes || input.facts.empty()) return true;
  // A root of broadcasts runs ahead of its readers through slots, and in place blocks need a second
  // copy anyway.
  if (input.operation == Operation::broadcast) return true;
  if (input.operation == Operation::alltoall && input.in_place) return true;
  return !std::all_of(input.facts.begin(), input.facts.end(), [](const BufferFacts& facts) {
    return facts.recv_mapped;
  });
}

bool may_stage(const PlanInput& input, const BufferFacts& mine) {
  if (input.in_place && input.operation == Operation::alltoall) return true;
  if (input.operation == Operation::broadcast && input.rank != input.root) return false;
  return !input.attach && !mine.send_mapped;
}

std::uint64_t stage_capacity(Operation operation, int ranks, const PlanLimits& limits) {
  const auto regions = operation == Operation::alltoall ? static_cast<std::uint64_t>(ranks) : 1;
  return regions * static_cast<std::uint64_t>(limits.stage_depth) * limits.stage_bytes;
}

Schedule plan_collective(const PlanInput& input) {
  if (input.ranks == 1) return plan_alone(input);
  switch (input.operation) {
    case Operation::alltoall:
      return plan_alltoall(input);
    case Operation::allgather:
      return plan_allgather(input);
    case Operation::broadcast:
      return plan_broadcast(input);
  }
  return {};
}

} // namespace ferry::core
