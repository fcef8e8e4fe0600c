// SPDX-License-Identifier: MIT
#include "lib/exec/node_run.hpp"

#include <algorithm>

#include "lib/base/inside.hpp"

namespace ferry::core {

NodeChannel::NodeChannel(
    std::vector<std::byte*> memory, int me, std::function<void(int member)> wake)
    : memory_(std::move(memory)), me_(me), wake_(std::move(wake)) {}

NodeWords& NodeChannel::words(int member) const {
  return *reinterpret_cast<NodeWords*>(memory_[static_cast<std::size_t>(member)]);
}

std::byte* NodeChannel::stage(int member) const {
  return memory_[static_cast<std::size_t>(member)] + sizeof(NodeWords);
}

void NodeChannel::tell_others() const {
  for (int member = 0; member < members(); ++member) {
    if (member != me_) wake_(member);
  }
}

namespace {

std::uint64_t packed(const CallShape& shape) {
  return static_cast<std::uint64_t>(shape.operation) | (shape.in_place ? 0x100u : 0u) |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(shape.root)) << 32;
}

CallShape unpacked(std::uint64_t what, std::uint64_t bytes) {
  return {
      static_cast<Operation>(what & 0xff), (what & 0x100u) != 0, bytes,
      static_cast<int>(what >> 32)};
}

} // namespace

// Pairs with compare(): a reader that sees one number before and after has read what is under it.
void NodeChannel::announce(const CallShape& shape) {
  shape_ = shape;
  NodeCall& call = words(me_).calls[++runs_ % kNodeCalls];
  call.run.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  call.what.store(packed(shape), std::memory_order_relaxed);
  call.bytes.store(shape.bytes, std::memory_order_relaxed);
  call.run.store(runs_, std::memory_order_release);
}

Status NodeChannel::compare(const std::vector<int>& rank_of) const {
  for (int member = 0; member < members(); ++member) {
    const NodeCall& call = words(member).calls[runs_ % kNodeCalls];
    if (call.run.load(std::memory_order_acquire) != runs_) continue;
    const std::uint64_t what = call.what.load(std::memory_order_relaxed);
    const std::uint64_t bytes = call.bytes.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (call.run.load(std::memory_order_relaxed) != runs_) continue;
    if (what == packed(shape_) && bytes == shape_.bytes) continue;
    return mismatch(rank_of[static_cast<std::size_t>(member)], unpacked(what, bytes), shape_);
  }
  return {};
}

Exchanges prepare_shapes(const NodePlan& plan, std::byte* stage, const Prepare& prepare) {
  const auto parts = [stage](const std::vector<NodePart>& list) {
    std::vector<ExchangePart> out;
    for (const NodePart& part : list) out.push_back({part.peer, stage + part.offset, part.bytes});
    return out;
  };
  Exchanges exchanges;
  for (const NodeShape& shape : plan.shapes) {
    exchanges.push_back(prepare(parts(shape.sends), parts(shape.receives)));
  }
  return exchanges;
}

void NodeRun::begin(
    const NodePlan& plan, NodeChannel& channel, NodeBlocks& blocks, const Exchanges& exchanges) {
  plan_ = &plan;
  channel_ = &channel;
  blocks_ = &blocks;
  exchanges_ = &exchanges;
  base_ = channel.rounds_;
  filled_ = exchanged_ = drained_ = next_local_ = next_arrival_ = 0;
  exchanging_ = false;
  free_.clear();
  // Regions of another plan have other places: the first use of one waits for all that came before.
  std::uint64_t before = 0;
  for (const std::uint64_t last : channel.last_use_) before = std::max(before, last);
  std::uint32_t taken = 0;
  for (std::size_t round = 0; round < plan.rounds.size(); ++round) {
    std::uint64_t used = 0;
    for (int region = 0; region < kNodeRegions; ++region) {
      const std::uint32_t bit = 1u << region;
      std::uint64_t& last = channel.last_use_[region];
      if ((plan.rounds[round].writes & bit) != 0) {
        used = std::max(used, (taken & bit) != 0 ? last : before);
      }
      if ((plan.rounds[round].touches & bit) != 0) last = number(round);
    }
    taken |= plan.rounds[round].touches;
    free_.push_back(used);
  }
  channel.rounds_ += plan.rounds.size();
}

Poll NodeRun::progress() {
  for (bool moved = true; moved;) {
    moved = false;
    while (fill()) moved = true;
    while (exchange()) moved = true;
    while (drain()) moved = true;
  }
  const std::size_t rounds = plan_->rounds.size();
  return filled_ == rounds && exchanged_ == rounds && drained_ == rounds ? Poll::ready
                                                                         : Poll::pending;
}

std::vector<int> NodeRun::senders() const {
  std::vector<int> ranks;
  if (!exchanging_) return ranks;
  const auto shape = static_cast<std::size_t>(plan_->rounds[exchanged_].shape);
  for (const NodePart& part : plan_->shapes[shape].receives) ranks.push_back(part.peer);
  return ranks;
}

// Pairs with the release stores below: what a member did before its word is seen after it.
bool NodeRun::all_reached(std::atomic<std::uint64_t> NodeWords::*word, std::uint64_t round) {
  for (int member = 0; member < channel_->members(); ++member) {
    if ((channel_->words(member).*word).load(std::memory_order_acquire) >= round) continue;
    waits_for_ = member;
    return false;
  }
  return true;
}

bool NodeRun::fill() {
  if (filled_ == plan_->rounds.size()) return false;
  const std::uint64_t free = free_[filled_];
  step_ = "an earlier round";
  if (!all_reached(&NodeWords::arrived, free) || !all_reached(&NodeWords::drained, free)) {
    return false;
  }
  for (const NodeCopy& copy : plan_->rounds[filled_].fills) {
    blocks_->load(copy.block, copy.skip, channel_->stage(copy.member) + copy.offset, copy.bytes);
  }
  channel_->words(channel_->me()).filled.store(number(filled_), std::memory_order_release);
  channel_->tell_others();
  ++filled_;
  return true;
}

bool NodeRun::exchange() {
  if (exchanged_ == plan_->rounds.size()) return false;
  const NodeRound& round = plan_->rounds[exchanged_];
  Exchange& exchange = *(*exchanges_)[static_cast<std::size_t>(round.shape)];
  if (!exchanging_) {
    if (exchanged_ == filled_) return false; // this rank's part of the region may be in use
    const bool sends = !plan_->shapes[static_cast<std::size_t>(round.shape)].sends.empty();
    step_ = "the bytes";
    if (sends && round.sends_of_mates && !all_reached(&NodeWords::filled, number(exchanged_))) {
      return false;
    }
    if (inside.mpi_closed) return false;
    exchange.start();
    exchanging_ = true;
  }
  if (!exchange.test()) {
    step_ = "other nodes";
    waits_for_ = -1;
    return false;
  }
  exchanging_ = false;
  channel_->words(channel_->me()).arrived.store(number(exchanged_), std::memory_order_release);
  channel_->tell_others();
  ++exchanged_;
  return true;
}

bool NodeRun::drain_list(
    const std::vector<NodeCopy>& copies, std::size_t& next,
    std::atomic<std::uint64_t> NodeWords::*word) {
  for (; next < copies.size(); ++next) {
    const NodeCopy& copy = copies[next];
    const auto seen = (channel_->words(copy.after).*word).load(std::memory_order_acquire);
    if (seen < number(drained_)) {
      step_ = "the bytes";
      waits_for_ = copy.after;
      return false;
    }
    if (copy.bytes == 0) continue; // waited for only
    blocks_->store(copy.block, copy.skip, channel_->stage(copy.member) + copy.offset, copy.bytes);
  }
  return true;
}

bool NodeRun::drain() {
  // In place, a block may be overwritten once its bytes of this round are in the stages.
  if (drained_ == filled_) return false;
  const NodeRound& round = plan_->rounds[drained_];
  const bool locals = drain_list(round.locals, next_local_, &NodeWords::filled);
  const bool arrivals = drain_list(round.arrivals, next_arrival_, &NodeWords::arrived);
  if (!locals || !arrivals) return false;
  next_local_ = next_arrival_ = 0;
  channel_->words(channel_->me()).drained.store(number(drained_), std::memory_order_release);
  channel_->tell_others();
  ++drained_;
  return true;
}

} // namespace ferry::core
