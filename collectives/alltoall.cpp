// SPDX-License-Identifier: MIT
#include "collectives/planner.hpp"
#include "collectives/slots.hpp"
#include "collectives/transfer.hpp"

namespace ferry::core {

// Direct: block i of every rank goes straight to rank i, peers in rotated order so that no receiver
// is served by all at once. n - 1 blocks leave and enter each rank; one transfer a pair.
Schedule plan_alltoall(const PlanInput& input) {
  const std::uint64_t block = input.block_bytes;
  const int me = input.rank;
  const Buffer source = input.in_place ? Buffer::recv : Buffer::send;
  const auto at = [&](Buffer buffer, int rank, int index) { return Place{buffer, rank, index, 0}; };
  if (fits_slots(input)) {
    SlotBuilder slots(input);
    for (int i = 1; i < input.ranks; ++i) {
      const int peer = (me + i) % input.ranks;
      slots.put(peer, at(source, me, peer), block);
    }
    if (!input.in_place) slots.copy_local(at(source, me, me), at(Buffer::recv, me, me), block);
    for (int i = 1; i < input.ranks; ++i) {
      const int peer = (me + input.ranks - i) % input.ranks;
      slots.get(peer, me, at(Buffer::recv, me, peer), block);
    }
    return slots.finish();
  }
  TransferBuilder transfers(input);
  for (int i = 1; i < input.ranks; ++i) {
    const int to = (me + i) % input.ranks;
    if (input.in_place) {
      transfers.exchange_in_place(to, at(Buffer::recv, me, to), block);
    } else {
      transfers.send(to, at(Buffer::send, me, to), at(Buffer::recv, to, me), block, to);
    }
  }
  for (int i = 1; i < input.ranks && !input.in_place; ++i) {
    const int from = (me + input.ranks - i) % input.ranks;
    transfers.receive(from, at(Buffer::send, from, me), at(Buffer::recv, me, from), block, me);
  }
  if (!input.in_place) {
    transfers.copy_local(at(Buffer::send, me, me), at(Buffer::recv, me, me), block);
  }
  return transfers.finish();
}

} // namespace ferry::core
