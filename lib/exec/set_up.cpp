// SPDX-License-Identifier: MIT
#include "lib/exec/set_up.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <set>

#include "collectives/table.hpp"
#include "lib/topology/launcher.hpp"

namespace ferry::core {
namespace {

template <std::size_t Size>
void copy_text(char (&out)[Size], const std::string& text) {
  const std::size_t length = std::min(text.size(), Size - 1);
  std::memcpy(out, text.data(), length);
  out[length] = 0;
}

WaitPolicy policy_for(const Topology& topology) {
  WaitPolicy policy;
  // With a core for each rank spinning costs nothing; beyond that a waiter gives way at once.
  const std::uint64_t spins = topology.oversubscribed ? table().spins_crowded : table().spins;
  policy.spins = config().spin >= 0 ? config().spin : static_cast<int>(spins);
  policy.warn_after = config().warn_after;
  policy.timeout = config().timeout;
  return policy;
}

// Once a process, by the first rank of whatever communicator comes first.
void warn_of_cores(const Topology& topology, int ranks_on_node) {
  static std::atomic<bool> told{false};
  if (topology.rank != 0 || told.exchange(true)) return;
  const auto all = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const std::string line = cpu_complaint(ranks_on_node, topology.cores, all, launcher_variable);
  if (!line.empty()) std::fprintf(stderr, "ferry: %s\n", line.c_str());
}

} // namespace

SetUp::SetUp(Bootstrap& bootstrap, Team& team, const BlockLayout& lane)
    : bootstrap_(bootstrap), team_(team), cards_(std::make_unique<Cards>()) {
  team_.topology.rank = bootstrap.rank();
  team_.topology.ranks = bootstrap.size();
  make_card(lane);
  count_cores({cards_->mine}, team_.topology);
  team_.policy = policy_for(team_.topology);
  cards_->all.resize(static_cast<std::size_t>(bootstrap.size()));
  bootstrap_.start_allgather(&cards_->mine, sizeof(RankCard), cards_->all.data());
}

SetUp::~SetUp() {
  if (!exchanged_) {
    // The exchange may still be under way, and this rank's card in other hands: both stay.
    static_cast<void>(cards_.release());
    return;
  }
  if (block_ != nullptr) Heap::instance().release(block_);
}

void SetUp::make_card(const BlockLayout& lane) {
  cards_->mine = describe_rank(config());
  cards_->mine.table = fingerprint(table());
  if (!config().enabled) {
    copy_text(cards_->mine.reason, "FERRY=off");
    return;
  }
  try {
    Heap& heap = Heap::instance();
    heap.announce_name();
    offer_probe(heap);
    block_ = static_cast<std::byte*>(heap.allocate(lane.bytes()));
    cards_->mine.heap = heap.id();
    cards_->mine.lane_offset = static_cast<std::uint64_t>(block_ - heap.base());
    cards_->mine.usable = 1;
  } catch (const Failure& failure) {
    copy_text(cards_->mine.reason, failure.status().cause);
  }
}

Poll SetUp::progress() {
  if (finished_) return Poll::ready;
  if (!exchanged_) {
    if (!bootstrap_.test()) return Poll::pending;
    exchanged_ = true;
    require_equal_configuration(cards_->all);
    count_cores(cards_->all, team_.topology);
    warn_of_cores(team_.topology, cards_->mine.ranks_on_node);
    team_.policy = policy_for(team_.topology);
    attach_all();
    if (finished_) return Poll::ready;
  }
  return count_votes();
}

void SetUp::finish(bool shared, std::string reason) {
  finished_ = true;
  team_.topology.shared = shared;
  team_.topology.why_not_shared = std::move(reason);
  if (Heap* heap = Heap::existing()) heap->forget_name();
  if (!shared) {
    team_.topology.attach = false;
    for (Member& member : team_.members) member.heap.reset();
    block_ = nullptr; // others may still look at the vote in it: never given back
  }
}

void SetUp::attach_all() {
  std::set<std::uint64_t> nodes;
  for (const RankCard& card : cards_->all) nodes.insert(card.boot_id);
  std::string reason;
  if (nodes.size() > 1) reason = fmt::format("the ranks are on {} nodes", nodes.size());
  bool attach = config().cma == CmaChoice::auto_;
  for (std::size_t rank = 0; rank < cards_->all.size(); ++rank) {
    const RankCard& card = cards_->all[rank];
    const bool watched = is_alive(card.pid, card.start_time);
    team_.members.push_back({nullptr, card.lane_offset, card.start_time, card.pid, watched});
    if (card.usable == 0 && reason.empty()) {
      reason = config().enabled ? fmt::format("rank {}: {}", rank, card.reason) : card.reason;
    }
    if (!reason.empty()) continue;
    std::string why;
    auto heap = PeerHeap::attach(card.heap, &why);
    if (heap == nullptr) {
      reason = fmt::format("rank {} cannot map rank {}: {}", team_.rank(), rank, why);
      continue;
    }
    attach = attach && attach_works(card.heap, heap->header());
    team_.members.back().heap = std::move(heap);
  }
  vote((reason.empty() ? kVoteShared : 0) | (attach ? kVoteAttach : 0), reason);
  // Whoever reads this vote comes to the same end; whoever cannot read it has its own reason.
  if (!reason.empty()) finish(false, reason);
}

void SetUp::vote(std::uint32_t bits, const std::string& reason) {
  if (block_ == nullptr) return;
  BlockHeader& header = header_of(block_);
  copy_text(header.reason, reason);
  header.vote.store(bits | kVoted, std::memory_order_release);
}

Poll SetUp::count_votes() {
  bool attach = true;
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    const Member& member = team_.member(rank);
    const BlockHeader& header = header_of(member.heap->base() + member.lane_offset);
    const std::uint32_t bits = header.vote.load(std::memory_order_acquire);
    waits_for_ = rank;
    if (bits == 0) return Poll::pending;
    if ((bits & kVoteShared) == 0) {
      finish(false, header.reason);
      return Poll::ready;
    }
    attach = attach && (bits & kVoteAttach) != 0;
  }
  team_.topology.attach = attach;
  finish(true, {});
  return Poll::ready;
}

std::byte* SetUp::take_lane_block() {
  return std::exchange(block_, nullptr);
}

} // namespace ferry::core
