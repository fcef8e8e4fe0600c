// SPDX-License-Identifier: MIT
#include "collectives/planner.hpp"
#include "collectives/slots.hpp"
#include "collectives/transfer.hpp"

namespace ferry::core {

// Direct: every rank's block goes straight to all others in rotated order. Where peers cannot reach
// the memory, one stage of the writer serves all its readers.
Schedule plan_allgather(const PlanInput& input) {
  const std::uint64_t block = input.block_bytes;
  const int me = input.rank;
  const auto slice = [&](int rank, int index) { return Place{Buffer::recv, rank, index, 0}; };
  const auto source = [&](int rank) {
    return input.in_place ? slice(rank, rank) : Place{Buffer::send, rank, 0, 0};
  };
  if (fits_slots(input)) {
    SlotBuilder slots(input);
    slots.put(kEveryone, source(me), block);
    if (!input.in_place) slots.copy_local(source(me), slice(me, me), block);
    for (int i = 1; i < input.ranks; ++i) {
      const int peer = (me + input.ranks - i) % input.ranks;
      slots.get(peer, kEveryone, slice(me, peer), block);
    }
    return slots.finish();
  }
  TransferBuilder transfers(input);
  transfers.send_to_all(source(me), me, block);
  for (int i = 1; i < input.ranks; ++i) {
    const int from = (me + input.ranks - i) % input.ranks;
    transfers.receive(from, source(from), slice(me, from), block, 0);
  }
  if (!input.in_place) transfers.copy_local(source(me), slice(me, me), block);
  return transfers.finish();
}

} // namespace ferry::core
