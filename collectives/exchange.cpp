// SPDX-License-Identifier: MIT
#include <algorithm>

#include "collectives/planner.hpp"
#include "collectives/slots.hpp"
#include "collectives/transfer.hpp"

namespace ferry::core {
namespace {

Place send_place(int rank, int block) {
  return {Buffer::send, rank, block, 0};
}

Place recv_place(int rank, int block) {
  return {Buffer::recv, rank, block, 0};
}

Schedule plan_small(const PlanInput& input) {
  const int me = input.rank;
  SlotBuilder slots(input);
  for (int i = 1; i < input.ranks; ++i) {
    const int peer = (me + i) % input.ranks;
    const PairPlan& pair = input.pairs[static_cast<std::size_t>(peer)];
    if (pair.send_bytes == 0 || !pair_fits_slots(pair, input.limits)) continue;
    const Place from = input.in_place ? recv_place(me, peer) : send_place(me, peer);
    slots.put(peer, from, pair.send_bytes);
  }
  if (input.own_block && !input.in_place) {
    const std::uint64_t own = input.pairs[static_cast<std::size_t>(me)].send_bytes;
    slots.copy_local(send_place(me, me), recv_place(me, me), own);
  }
  for (int i = 1; i < input.ranks; ++i) {
    const int peer = (me + input.ranks - i) % input.ranks;
    const PairPlan& pair = input.pairs[static_cast<std::size_t>(peer)];
    if (pair.recv_bytes == 0 || !pair_fits_slots(pair, input.limits)) continue;
    slots.get(peer, me, recv_place(me, peer), pair.recv_bytes);
  }
  return slots.finish();
}

// In place both directions of a pair are equal, so both ranks choose the same way.
Schedule plan_large(const PlanInput& input) {
  const int me = input.rank;
  TransferBuilder transfers(input);
  for (int i = 1; i < input.ranks; ++i) {
    const int to = (me + i) % input.ranks;
    const PairPlan& pair = input.pairs[static_cast<std::size_t>(to)];
    const bool nothing = pair.send_bytes == 0 && pair.recv_bytes == 0;
    if (nothing || pair_fits_slots(pair, input.limits)) continue;
    if (input.in_place) {
      transfers.exchange_in_place(to, recv_place(me, to), pair.send_bytes);
    } else if (pair.send_bytes > 0) {
      transfers.send(to, send_place(me, to), recv_place(to, me), pair.send_bytes, to);
    }
  }
  for (int i = 1; i < input.ranks && !input.in_place; ++i) {
    const int from = (me + input.ranks - i) % input.ranks;
    const PairPlan& pair = input.pairs[static_cast<std::size_t>(from)];
    if (pair.recv_bytes == 0 || pair_fits_slots(pair, input.limits)) continue;
    transfers.receive(from, send_place(from, me), recv_place(me, from), pair.recv_bytes, me);
  }
  return transfers.finish();
}

// Entry signals first, then what goes through slots, then the final waits of the transfers.
Schedule merge(Schedule transfers, const Schedule& slots) {
  auto& host = transfers.queues.front().steps;
  const auto waits = std::find_if(
      host.begin(), host.end(), [](const Step& step) { return step.kind != StepKind::signal; });
  const auto& steps = slots.queues.front().steps;
  host.insert(waits, steps.begin(), steps.end());
  transfers.slot_bytes = slots.slot_bytes;
  transfers.slot_count = slots.slot_count;
  transfers.why += "; " + slots.why;
  return transfers;
}

} // namespace

// Pairwise: every pair of ranks knows the sizes of its two blocks and chooses its way alike: slots
// when both fit, else a transfer each way. Pairs without bytes do nothing. Gather and scatter are
// exchanges in which only the root has peers. At most n - 1 blocks leave and enter each rank.
Schedule plan_exchange(const PlanInput& input) {
  switch (input.part) {
    case Part::slots:
      return plan_small(input);
    case Part::transfers:
      return plan_large(input);
    case Part::all:
      break;
  }
  const Schedule slots = plan_small(input);
  Schedule transfers = plan_large(input);
  const bool no_transfers = transfers.queues.size() == 1 && transfers.queues.front().steps.empty();
  return no_transfers ? slots : merge(std::move(transfers), slots);
}

} // namespace ferry::core
