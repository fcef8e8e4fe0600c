// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <algorithm>

#include "lib/exec/lane.hpp"

namespace ferry::core {

std::string explain_rings(const Schedule& schedule, const PlanInput& input) {
  const std::size_t queues = schedule.queues.size() - 1;
  return fmt::format(
      "{} queue{} of the {} engine; {} {}", queues, queues == 1 ? "" : "s", process_engine().name(),
      schedule.why, decided_by(input, schedule.path));
}

namespace {

// Each rank has a stage for every other one: with many ranks the chunks become smaller.
std::uint64_t stage_chunk(std::uint64_t most, int ranks, int depth) {
  constexpr std::uint64_t kSmallestChunk = 4096;
  const std::uint64_t share = table().stage_budget / static_cast<std::uint64_t>(ranks * depth);
  return std::min(most, std::max(share / kSmallestChunk * kSmallestChunk, kSmallestChunk));
}

} // namespace

// With more ranks than cores a hop costs a switch of processes: one hop through a slot beats the
// two of a direct copy at any size that fits.
PlanLimits plan_limits(const Config& config, int ranks, bool oversubscribed) {
  const Table& table = core::table();
  PlanLimits limits;
  const std::uint64_t share =
      table.slot_budget / (table.slot_depth * static_cast<std::uint64_t>(ranks));
  const std::uint64_t stride = std::max<std::uint64_t>(share / 64 * 64, 64);
  limits.slot_bytes = config.slot_bytes >= 0
                          ? static_cast<std::uint64_t>(config.slot_bytes)
                          : std::min(table.slot_bytes, stride - sizeof(SlotHeader));
  limits.direct_bytes = oversubscribed || config.slot_bytes >= 0
                            ? limits.slot_bytes
                            : std::min(table.direct_bytes, limits.slot_bytes);
  limits.stage_depth = static_cast<int>(table.stage_depth);
  limits.stage_bytes = stage_chunk(
      config.stage_bytes > 0 ? static_cast<std::uint64_t>(config.stage_bytes) : table.stage_bytes,
      ranks, limits.stage_depth);
  limits.attach_from = table.attach_from;
  limits.share_from = oversubscribed ? 0 : table.share_from;
  return limits;
}

PlanInput plan_input(const Team& team, const CollectiveDesc& desc, const PlanLimits& limits) {
  PlanInput input;
  input.operation = desc.operation;
  input.rank = team.rank();
  input.ranks = team.ranks();
  input.root = desc.root;
  input.in_place = desc.in_place;
  input.attach = team.topology.attach;
  input.block_bytes = desc.block_bytes();
  input.limits = limits;
  input.own_block = desc.own_block;
  input.handshake = desc.form == Form::persistent;
  return input;
}

// Fits a slot, and would go straight if all ranks knew each other's buffers.
bool Lane::has_habit(const CollectiveDesc& desc) const {
  const std::uint64_t bytes = desc.block_bytes();
  if (bytes <= limits_.direct_bytes || bytes > limits_.slot_bytes || is_exchange(desc))
    return false;
  if (desc.operation == Operation::allgather) return true;
  return desc.operation == Operation::alltoall && !desc.in_place;
}

bool Lane::goes_through_slots(const CollectiveDesc& desc) const {
  if (has_habit(desc) && habits_.direct(desc.operation, desc.block_bytes())) return false;
  return fits_slots(plan_input(team_, desc, limits_));
}

BlockLayout lane_layout(const Config& config, int ranks) {
  BlockLayout layout;
  layout.ranks = ranks;
  layout.slot_payload = plan_limits(config, ranks, false).slot_bytes;
  layout.slot_count = ranks;
  layout.slot_depth = static_cast<int>(table().slot_depth);
  layout.pair_boards = true;
  return layout;
}

} // namespace ferry::core
