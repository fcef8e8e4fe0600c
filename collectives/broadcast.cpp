// SPDX-License-Identifier: MIT
#include "collectives/planner.hpp"
#include "collectives/slots.hpp"
#include "collectives/transfer.hpp"

namespace ferry::core {

// Flat: the root's message goes straight to every rank; readers copy side by side where they can
// reach the root's buffer.
Schedule plan_broadcast(const PlanInput& input) {
  const std::uint64_t bytes = input.block_bytes;
  const int me = input.rank;
  const Place source{Buffer::send, input.root, 0, 0};
  const Place target{Buffer::recv, me, 0, 0};
  if (fits_slots(input)) {
    SlotBuilder slots(input);
    if (me == input.root) {
      slots.put(kEveryone, source, bytes);
    } else {
      slots.get(input.root, kEveryone, target, bytes);
    }
    return slots.finish();
  }
  TransferBuilder transfers(input);
  if (me != input.root) {
    transfers.receive(input.root, source, target, bytes, 0);
    return transfers.finish();
  }
  transfers.send_to_all(source, 0, bytes);
  return transfers.finish();
}

} // namespace ferry::core
