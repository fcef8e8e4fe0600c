// SPDX-License-Identifier: MIT
// What a lane can say about an operation that does not end.
#include <fmt/format.h>
#include <algorithm>

#include "lib/exec/lane.hpp"

namespace ferry::core {

std::string Lane::missing(const LaneOp& op) const {
  const char* what = "the buffers";
  if (op.slots_open) {
    what = op.slots.step();
  } else if (op.transfers == LaneOp::Transfers::run) {
    return op.rings->missing();
  } else if (op.transfers == LaneOp::Transfers::offer) {
    what = "the end of an earlier call";
  }
  return fmt::format(
      "{} on {}, call {}: waits for {} of {}", name_of(op.desc.operation), team_.name, op.sequence,
      what,
      op.waits_for == kEveryone ? std::string("other ranks")
                                : fmt::format("rank {}", op.waits_for));
}

std::string Lane::history() const {
  constexpr std::size_t kOwn = 4;
  constexpr std::size_t kTheirs = 2;
  constexpr int kMostRanks = 8;
  const std::string here = recorder_.newest();
  std::string text = fmt::format(
      "rank {}, this one, began last: {}", team_.rank(),
      here.empty() ? "nothing" : recorder_.last(kOwn));
  int others = 0;
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    const Recorder& theirs = header_of(channel_.block(rank)).recorder;
    if (rank == team_.rank() || theirs.newest() == here || ++others > kMostRanks) continue;
    const std::string last = theirs.last(kTheirs);
    text += fmt::format("\nrank {} began last: {}", rank, last.empty() ? "nothing" : last);
  }
  if (others > kMostRanks) text += fmt::format("\nand {} other ranks", others - kMostRanks);
  if (others == 0) text += "\nall others began the same last";
  return text;
}

// A rank that has completed this call without what every rank of such a call gives has made another
// one.
bool Lane::left_without(int rank, const LaneOp& op) const {
  if (rank == team_.rank()) return false;
  if (header_of(channel_.block(rank)).done.load(std::memory_order_acquire) < op.sequence) {
    return false;
  }
  if (op.transfers == LaneOp::Transfers::gather) {
    const bool partner = std::find(partners_.begin(), partners_.end(), rank) != partners_.end();
    const Board& theirs = is_exchange(op.desc) ? pair_board(rank, op.sequence, team_.rank())
                                               : board(rank, op.sequence);
    if (partner && theirs.sequence.load(std::memory_order_acquire) < op.sequence) return true;
  }
  return op.slots_open && op.slots.waits_for_data() && op.slots.waits_for() == rank &&
         !op.slots.has_arrived(channel_);
}

// What `rank` has shown of its call under the same number, against ours.
Status Lane::compare_posted(int rank, const LaneOp& op) const {
  const bool exchange = is_exchange(op.desc);
  const Offer ours =
      exchange ? make_pair_offer(op.desc, rank) : make_offer(op.desc, team_.topology);
  for (const Board* posted :
       {&board(rank, op.sequence), &pair_board(rank, op.sequence, team_.rank())}) {
    if (posted->sequence.load(std::memory_order_acquire) != op.sequence) continue;
    if (Status status = compare_offers(rank, posted->offer, ours); !status.ok()) return status;
  }
  for (int index : {rank, team_.rank()}) {
    const auto* slot = reinterpret_cast<const SlotHeader*>(
        channel_.layout().slot(channel_.block(rank), op.sequence, index));
    if (slot->sequence.load(std::memory_order_acquire) != op.sequence) continue;
    Offer theirs;
    theirs.operation = slot->operation;
    theirs.send_bytes = slot->bytes;
    theirs.recv_bytes = ours.send_bytes;
    theirs.root = slot->root;
    theirs.in_place = static_cast<std::uint8_t>(slot->in_place & ~kMappedBit);
    if (Status status = compare_offers(rank, theirs, ours); !status.ok()) return status;
  }
  return {};
}

Status Lane::find_stray(const LaneOp& op) const {
  const bool handed_over = op.phase == LaneOp::Phase::mpi;
  const bool moving = op.transfers == LaneOp::Transfers::run && !op.slots_open;
  if (handed_over || moving || op.transfers == LaneOp::Transfers::offer) return {};
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    if (rank == team_.rank()) continue;
    if (left_without(rank, op)) {
      return {
          ErrorKind::mismatch,
          fmt::format(
              "rank {} has made another call than {} in its place", rank,
              name_of(op.desc.operation)),
          "make the same call with matching counts and types on every rank"};
    }
    if (Status status = compare_posted(rank, op); !status.ok()) return status;
  }
  return {};
}

} // namespace ferry::core
