// SPDX-License-Identifier: MIT
#include "collectives/slots.hpp"

#include <fmt/format.h>

#include "collectives/transfer.hpp"

namespace ferry::core {

SlotBuilder::SlotBuilder(const PlanInput& input) : input_(input) {
  schedule_.operation = input.operation;
  schedule_.path = Path::slots;
  schedule_.rank = input.rank;
  schedule_.ranks = input.ranks;
  schedule_.irregular = input.irregular();
  schedule_.slot_bytes = input.irregular() ? input.limits.slot_bytes : input.block_bytes;
  schedule_.queues.push_back({input.rank, {}});
}

Place SlotBuilder::slot_of(int writer, int reader) const {
  const std::uint64_t index = reader == kEveryone ? 0 : static_cast<std::uint64_t>(reader);
  return {Buffer::slot, writer, 0, index * schedule_.slot_bytes};
}

void SlotBuilder::put(int reader, Place from, std::uint64_t bytes) {
  auto& steps = schedule_.queues.front().steps;
  schedule_.slot_count = reader == kEveryone ? 1 : input_.ranks;
  if (bytes > 0) steps.push_back(copy_step(slot_of(input_.rank, reader), from, bytes));
  steps.push_back(signal_step(SignalKind::slot, reader));
}

void SlotBuilder::get(int writer, int reader, Place to, std::uint64_t bytes) {
  auto& steps = schedule_.queues.front().steps;
  // Also a rank that only reads has slots.
  schedule_.slot_count = reader == kEveryone ? 1 : input_.ranks;
  steps.push_back(await_step(SignalKind::slot, writer, 1));
  if (bytes > 0) steps.push_back(copy_step(to, slot_of(writer, reader), bytes));
}

void SlotBuilder::copy_local(Place from, Place to, std::uint64_t bytes) {
  if (bytes > 0) schedule_.queues.front().steps.push_back(copy_step(to, from, bytes));
}

Schedule SlotBuilder::finish() {
  if (input_.irregular()) {
    schedule_.why = fmt::format(
        "blocks of up to {} bytes in both directions of a pair ride with their flag",
        input_.limits.slot_bytes);
    return std::move(schedule_);
  }
  schedule_.why = fmt::format(
      "{} bytes a block ride with their flag, blocks up to {} bytes do ({} where all map all)",
      input_.block_bytes, input_.limits.slot_bytes, input_.limits.direct_bytes);
  return std::move(schedule_);
}

} // namespace ferry::core
