// SPDX-License-Identifier: MIT
#include "lib/exec/set_up.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include "collectives/table.hpp"
#include "lib/base/below.hpp"
#include "lib/exec/device_memory.hpp"
#include "lib/exec/node_team.hpp"
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

// What follows the bits of what a rank reached.
enum ReachTail : std::size_t { kBlockOffset, kMayPass, kTailWords };

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
    : bootstrap_(bootstrap), team_(team), flight_(std::make_unique<Flight>()) {
  team_.topology.rank = bootstrap.rank();
  team_.topology.ranks = bootstrap.size();
  make_card(lane);
  count_cores({flight_->mine}, flight_->mine, team_.topology);
  team_.policy = policy_for(team_.topology);
  flight_->all.resize(static_cast<std::size_t>(bootstrap.size()));
  bootstrap_.start_allgather(&flight_->mine, sizeof(RankCard), flight_->all.data());
  if (config().enabled) prepare_nodes();
}

SetUp::~SetUp() {
  if (!exchanged_ || forming_) {
    // An exchange may still be under way, and what this rank gave in other hands: all stays.
    static_cast<void>(flight_.release());
    static_cast<void>(nodes_exchange_.release());
    return;
  }
  if (block_ != nullptr) Heap::instance().release(block_);
}

// Set up here, where all ranks make the same call, and started only if the ranks do not all share.
void SetUp::prepare_nodes() {
  const int ranks = team_.ranks();
  const std::size_t words = Reach::words_for(ranks) + kTailWords;
  flight_->reached.resize(words);
  flight_->all_reached.resize(words * static_cast<std::size_t>(ranks));
  std::vector<ExchangePart> sends;
  std::vector<ExchangePart> receives;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == team_.rank()) continue;
    std::uint64_t* theirs = flight_->all_reached.data() + words * static_cast<std::size_t>(rank);
    sends.push_back({rank, flight_->reached.data(), words * sizeof(std::uint64_t)});
    receives.push_back({rank, theirs, words * sizeof(std::uint64_t)});
  }
  nodes_exchange_ = bootstrap_.prepare(sends, receives);
}

void SetUp::make_card(const BlockLayout& lane) {
  flight_->mine = describe_rank(config());
  flight_->mine.table = fingerprint(table());
  flight_->mine.node = pretended_node(config().nodes, team_.rank(), team_.ranks());
  if (!config().enabled) {
    copy_text(flight_->mine.reason, "FERRY=off");
    return;
  }
  try {
    Heap& heap = Heap::instance();
    heap.announce_name();
    offer_probe(heap);
    block_ = static_cast<std::byte*>(heap.allocate(lane.bytes()));
    flight_->mine.heap = heap.id();
    flight_->mine.lane_offset = static_cast<std::uint64_t>(block_ - heap.base());
    flight_->mine.usable = 1;
  } catch (const Failure& failure) {
    copy_text(flight_->mine.reason, failure.status().cause);
  }
}

Poll SetUp::progress() {
  if (finished_) return Poll::ready;
  if (forming_) return form_nodes();
  if (!exchanged_) {
    if (!bootstrap_.test()) return Poll::pending;
    exchanged_ = true;
    require_equal_configuration(flight_->all);
    count_cores(flight_->all, flight_->mine, team_.topology);
    warn_of_cores(team_.topology, flight_->mine.ranks_on_node);
    team_.policy = policy_for(team_.topology);
    attach_all();
    if (finished_) return Poll::ready;
    if (forming_) return form_nodes();
  }
  return count_votes();
}

void SetUp::finish(bool shared, std::string reason) {
  finished_ = true;
  team_.topology.shared = shared;
  team_.topology.why_not_shared = std::move(reason);
  if (Heap* heap = Heap::existing()) heap->forget_name();
  nodes_exchange_.reset();
  if (shared) return;
  team_.topology.attach = false;
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    const bool mate = nodes_ && nodes_->map.node(rank) == nodes_->map.node(team_.rank());
    if (!mate) team_.member(rank).heap.reset();
  }
  block_ = nullptr; // others may still look at the vote in it: never given back
}

bool SetUp::same_node(int rank) const {
  const RankCard& card = flight_->all[static_cast<std::size_t>(rank)];
  return card.boot_id == flight_->mine.boot_id && card.node == flight_->mine.node;
}

// As far as the cards tell, which all ranks read alike.
bool SetUp::one_node() const {
  const RankCard& first = flight_->all.front();
  return std::all_of(flight_->all.begin(), flight_->all.end(), [&](const RankCard& card) {
    return card.boot_id == first.boot_id && card.node == first.node;
  });
}

// Empty, or why no rank may share anything.
std::string SetUp::unusable() const {
  for (std::size_t rank = 0; rank < flight_->all.size(); ++rank) {
    const RankCard& card = flight_->all[rank];
    if (card.usable != 0) continue;
    return config().enabled ? fmt::format("rank {}: {}", rank, card.reason) : card.reason;
  }
  return {};
}

void SetUp::attach_all() {
  std::string reason = unusable();
  const bool usable = reason.empty();
  bool attach = config().cma == CmaChoice::auto_;
  for (std::size_t rank = 0; rank < flight_->all.size(); ++rank) {
    const RankCard& card = flight_->all[rank];
    const bool watched = is_alive(card.pid, card.start_time);
    team_.members.push_back({nullptr, card.lane_offset, card.start_time, card.pid, watched});
    if (!usable || !same_node(static_cast<int>(rank))) continue;
    std::string why;
    auto heap = PeerHeap::attach(card.heap, &why);
    if (heap == nullptr) {
      if (reason.empty())
        reason = fmt::format("rank {} cannot map rank {}: {}", team_.rank(), rank, why);
      continue;
    }
    attach = attach && attach_works(card.heap, heap->header());
    team_.members.back().heap = std::move(heap);
  }
  if (reason.empty() && !one_node()) reason = "the ranks are on several nodes";
  vote((reason.empty() ? kVoteShared : 0) | (attach ? kVoteAttach : 0), reason);
  // Whoever reads this vote comes to the same end; whoever cannot read it has its own reason.
  if (!usable) {
    finish(false, reason);
  } else if (!reason.empty()) {
    begin_nodes(reason);
  }
}

// A blocking call inside of the MPI below is out of Ferry's hands: no time limit ends it, it spins
// where ranks outnumber cores, it may not get memory of a GPU, and Ferry's other operations stand
// still unless it moves them on.
bool SetUp::may_pass() const {
  return below_serves.load(std::memory_order_relaxed) && config().timeout == 0 &&
         !team_.topology.oversubscribed && !may_have_gpu();
}

// Tell all ranks whom this one reached, and where its block for collectives over nodes is. Every
// rank comes here, or none.
void SetUp::begin_nodes(std::string reason) {
  why_unshared_ = std::move(reason);
  std::uint64_t* tail = flight_->reached.data() + Reach::words_for(team_.ranks());
  tail[kMayPass] = may_pass() ? 1 : 0;
  bool mates = false;
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    mates = mates || (rank != team_.rank() && team_.member(rank).heap != nullptr);
  }
  try {
    if (mates) {
      const std::uint64_t bytes = node_block_bytes(node_stage_bytes(config()));
      node_block_ = static_cast<std::byte*>(Heap::instance().allocate(bytes));
      tail[kBlockOffset] = static_cast<std::uint64_t>(node_block_ - Heap::instance().base());
    }
  } catch (const Failure&) {
    mates = false; // reaches nobody, and is a node of its own
  }
  Reach own(team_.ranks());
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    const bool reached = rank == team_.rank() || (mates && team_.member(rank).heap != nullptr);
    if (reached) own.set(0, rank);
  }
  std::copy_n(own.of(0), Reach::words_for(team_.ranks()), flight_->reached.begin());
  forming_ = true;
  nodes_exchange_->start();
}

Poll SetUp::form_nodes() {
  waits_for_ = -1;
  if (!nodes_exchange_->test()) return Poll::pending;
  forming_ = false;
  const int ranks = team_.ranks();
  const std::size_t words = flight_->reached.size();
  std::copy(
      flight_->reached.begin(), flight_->reached.end(),
      flight_->all_reached.begin() + static_cast<std::ptrdiff_t>(words) * team_.rank());
  NodeResources found;
  Reach reach(ranks);
  bool all_pass = true;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::uint64_t* theirs =
        flight_->all_reached.data() + words * static_cast<std::size_t>(rank);
    std::copy_n(theirs, Reach::words_for(ranks), reach.of(rank));
    const std::uint64_t* tail = theirs + Reach::words_for(ranks);
    found.blocks.push_back(tail[kBlockOffset]);
    all_pass = all_pass && tail[kMayPass] != 0;
  }
  found.map = make_node_map(group_by_reach(reach, ranks));
  found.block = std::exchange(node_block_, nullptr);
  if (found.map.size(found.map.node(team_.rank())) == 1 && found.block != nullptr) {
    Heap::instance().release(std::exchange(found.block, nullptr));
  }
  const int nodes = found.map.nodes();
  lets_pass_ = all_pass && found.map.most_members() == 1;
  if (found.map.most_members() > 1) nodes_ = std::move(found);
  const bool counted = one_node();
  finish(false, counted ? why_unshared_ : fmt::format("the ranks are on {} nodes", nodes));
  return Poll::ready;
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
      begin_nodes(header.reason);
      return form_nodes();
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

std::optional<NodeResources> SetUp::take_nodes() {
  return std::exchange(nodes_, std::nullopt);
}

} // namespace ferry::core
