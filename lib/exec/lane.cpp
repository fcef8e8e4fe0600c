// SPDX-License-Identifier: MIT
#include "lib/exec/lane.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "lib/exec/graveyard.hpp"

namespace ferry::core {
namespace {

constexpr std::size_t kKeptPlans = 64; // of each kind; new sizes without end must not grow memory

std::vector<std::byte*> lane_blocks(const Team& team) {
  std::vector<std::byte*> blocks;
  for (const Member& member : team.members) {
    blocks.push_back(member.heap->base() + member.lane_offset);
  }
  return blocks;
}

} // namespace

std::string explain_rings(const Schedule& schedule, const PlanInput& input) {
  const std::size_t queues = schedule.queues.size() - 1;
  return fmt::format(
      "{} queue{} of the {} engine; {} {}", queues, queues == 1 ? "" : "s", process_engine().name(),
      schedule.why, decided_by(input, schedule.path));
}

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
  limits.stage_bytes = config.stage_bytes > 0 ? config.stage_bytes : table.stage_bytes;
  limits.stage_depth = static_cast<int>(table.stage_depth);
  limits.attach_from = table.attach_from;
  return limits;
}

PlanInput plan_input(const Team& team, const CollectiveDesc& desc, const PlanLimits& limits) {
  PlanInput input;
  input.operation = desc.operation;
  input.rank = team.rank();
  input.ranks = team.ranks();
  input.root = desc.root;
  input.in_place = desc.in_place;
  input.block_bytes = desc.block_bytes();
  input.attach = team.topology.attach && input.block_bytes >= limits.attach_from;
  input.limits = limits;
  input.handshake = desc.form == Form::persistent;
  return input;
}

BlockLayout lane_layout(const Config& config, int ranks) {
  BlockLayout layout;
  layout.ranks = ranks;
  layout.slot_payload = plan_limits(config, ranks, false).slot_bytes;
  layout.slot_count = ranks;
  layout.slot_depth = static_cast<int>(table().slot_depth);
  return layout;
}

std::size_t Lane::KeyHash::operator()(const Key& key) const noexcept {
  std::uint64_t hash = key.bytes * 0x9e3779b97f4a7c15u;
  hash ^= (static_cast<std::uint64_t>(key.root) << 8) +
          static_cast<std::uint64_t>(key.operation) * 2 + (key.in_place ? 1 : 0);
  return static_cast<std::size_t>(hash ^ (hash >> 29));
}

Lane::Key Lane::key_of(const CollectiveDesc& desc) {
  return {desc.block_bytes(), desc.root, desc.operation, desc.in_place};
}

Lane::Lane(Team& team, const BlockLayout& layout, std::byte* block)
    : team_(team),
      limits_(plan_limits(config(), team.ranks(), team.topology.oversubscribed)),
      channel_(team, layout, lane_blocks(team)),
      offers_(static_cast<std::size_t>(team.ranks())) {
  counts_.words = block + BlockLayout::signals_offset();
  counts_.base.assign(static_cast<std::size_t>(kSignalWords * team.ranks()), 0);
}

Lane::~Lane() {
  ring_plans_.clear();
  if (abandoned_) return; // peers may be anywhere in this memory
  if (stage_ != nullptr) Heap::instance().release(stage_);
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    if (rank == team_.rank()) continue;
    // Pairs with the acquire in reap_blocks().
    header_of(channel_.block(rank)).departed.fetch_add(1, std::memory_order_release);
  }
  bury_block(channel_.block(team_.rank()), static_cast<std::size_t>(team_.ranks() - 1));
}

void Lane::abandon() {
  abandoned_ = true;
  ring_plans_.clear();
}

Board& Lane::board(int rank, std::uint64_t sequence) const {
  return header_of(channel_.block(rank)).boards[sequence % 2];
}

Lane::SlotEntry& Lane::slot_entry(const CollectiveDesc& desc) {
  const Key key = key_of(desc);
  if (last_slot_ != nullptr && last_slot_key_ == key) return *last_slot_;
  auto found = slot_plans_.find(key);
  if (found == slot_plans_.end()) {
    if (slot_plans_.size() >= kKeptPlans) slot_plans_.clear();
    ++plan_generation_;
    const PlanInput input = plan_input(team_, desc, limits_);
    const Schedule schedule = plan_collective(input);
    SlotEntry entry{
        lower_slots(schedule, desc.in_place, desc.root),
        fmt::format("{} {}", schedule.why, decided_by(input, schedule.path))};
    found = slot_plans_.emplace(key, std::move(entry)).first;
  }
  last_slot_key_ = key;
  last_slot_ = &found->second;
  return *last_slot_;
}

Lane::RingEntry& Lane::ring_entry(const LaneOp& op, std::vector<BufferFacts> facts) {
  const Key key = key_of(op.desc);
  const auto found = ring_plans_.find(key);
  if (found != ring_plans_.end() && found->second.facts == facts) return found->second;
  if (ring_plans_.size() >= kKeptPlans) ring_plans_.clear();
  ++plan_generation_;
  RingEntry entry;
  entry.facts = std::move(facts);
  PlanInput input = plan_input(team_, op.desc, limits_);
  input.facts = entry.facts;
  entry.schedule = plan_collective(input);
  entry.plan = std::make_unique<RingPlan>(
      team_, counts_, fmt::format("{} on {}", name_of(op.desc.operation), team_.name));
  entry.why = explain_rings(entry.schedule, input);
  return ring_plans_[key] = std::move(entry);
}

void Lane::begin(LaneOp& op) {
  op.sequence = ++sequence_;
  if (fits_slots(plan_input(team_, op.desc, limits_))) {
    SlotEntry& entry = slot_entry(op.desc);
    op.path = Path::slots;
    op.why = &entry.why;
    op.slots.begin(entry.program, op.sequence, op.desc.send, op.desc.recv);
    op.phase = LaneOp::Phase::slots;
  } else {
    op.path = Path::engine;
    op.phase = LaneOp::Phase::offer;
  }
}

void Lane::complete(LaneOp& op) {
  channel_.complete(op.sequence);
  op.phase = LaneOp::Phase::complete;
}

void Lane::progress(LaneOp& op) {
  if (op.phase == LaneOp::Phase::slots) {
    if (op.slots.progress(channel_) == Poll::pending) {
      op.waits_for = op.slots.waits_for();
      return;
    }
    op.status = op.slots.status();
    op.phase = LaneOp::Phase::complete;
    return;
  }
  if (op.phase == LaneOp::Phase::offer) {
    if (!boards_free(op)) return;
    post_offer(op);
    op.phase = LaneOp::Phase::gather;
  }
  if (op.phase == LaneOp::Phase::gather && gather(op)) start_rings(op);
  if (op.phase == LaneOp::Phase::rings && op.rings->progress() == Poll::ready) {
    op.status = op.rings->status();
    complete(op);
  }
}

bool Lane::boards_free(LaneOp& op) {
  const std::uint64_t used = board_used_[op.sequence % 2];
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    op.waits_for = rank;
    if (rank != team_.rank() && !channel_.completed(rank, used)) return false;
  }
  return true;
}

bool Lane::provide_stage(const CollectiveDesc& desc, const BufferFacts& mine) {
  PlanInput input = plan_input(team_, desc, limits_);
  if (!may_stage(input, mine)) return true;
  const std::uint64_t need = stage_capacity(desc.operation, team_.ranks(), limits_);
  if (stage_bytes_ >= need) return true;
  try {
    // The stage is idle between operations: its readers have drained it.
    auto* stage = static_cast<std::byte*>(Heap::instance().allocate(need));
    if (stage_ != nullptr) Heap::instance().release(stage_);
    stage_ = stage;
    stage_bytes_ = need;
    return true;
  } catch (const Failure&) {
    return false;
  }
}

void Lane::post_offer(LaneOp& op) {
  Offer offer = make_offer(op.desc, team_.topology);
  if (!provide_stage(op.desc, {offer.send_mapped != 0, offer.recv_mapped != 0})) {
    offer.no_memory = 1;
  }
  offer.block = team_.me().lane_offset;
  if (stage_ != nullptr) {
    offer.stage = static_cast<std::uint64_t>(stage_ - team_.me().heap->base());
  }
  board_used_[op.sequence % 2] = op.sequence;
  Board& mine = board(team_.rank(), op.sequence);
  mine.offer = offer;
  // Pairs with the acquire in gather().
  mine.sequence.store(op.sequence, std::memory_order_release);
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    if (rank != team_.rank()) team_.wake_rank(rank, true);
  }
}

bool Lane::gather(LaneOp& op) {
  for (int i = 0; i < team_.ranks(); ++i) {
    const int rank = (team_.rank() + i) % team_.ranks();
    const Board& theirs = board(rank, op.sequence);
    op.waits_for = rank;
    if (theirs.sequence.load(std::memory_order_acquire) < op.sequence) return false;
    if (rank != team_.rank()) channel_.note_done(rank, op.sequence - 1);
    offers_[static_cast<std::size_t>(rank)] = theirs.offer;
  }
  return true;
}

// Every rank has the same offers in its hands and comes to the same decision.
void Lane::start_rings(LaneOp& op) {
  const Offer& mine = offers_[static_cast<std::size_t>(team_.rank())];
  bool memory = true;
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    const Offer& theirs = offers_[static_cast<std::size_t>(rank)];
    memory = memory && theirs.no_memory == 0;
    if (op.status.ok()) op.status = compare_offers(rank, theirs, mine);
  }
  if (!op.status.ok()) {
    complete(op);
    return;
  }
  if (!memory) {
    op.phase = LaneOp::Phase::mpi;
    return;
  }
  RingEntry& entry = ring_entry(op, facts_of(offers_));
  AddressBook book = make_book(team_, op.desc, offers_);
  if (entry.book != book) {
    entry.book = std::move(book);
    const std::uint64_t stage = stage_capacity(op.desc.operation, team_.ranks(), limits_);
    entry.plan->bind(
        lower(entry.schedule, entry.book, config().max_packet_bytes),
        make_windows(team_, op.desc, offers_, entry.book, stage));
  }
  op.why = &entry.why;
  op.rings = entry.plan.get();
  op.rings->start();
  op.phase = LaneOp::Phase::rings;
}

std::string Lane::missing(const LaneOp& op) const {
  const char* what = "the buffers";
  switch (op.phase) {
    case LaneOp::Phase::rings:
      return op.rings->missing();
    case LaneOp::Phase::slots:
      what = op.slots.step();
      break;
    case LaneOp::Phase::offer:
      what = "the end of an earlier call";
      break;
    default:
      break;
  }
  return fmt::format(
      "{} on {}, call {}: waits for {} of {}", name_of(op.desc.operation), team_.name, op.sequence,
      what,
      op.waits_for == kEveryone ? std::string("other ranks")
                                : fmt::format("rank {}", op.waits_for));
}

// A rank that has completed this call without what every rank of such a call gives has made another
// one.
bool Lane::left_without(int rank, const LaneOp& op) const {
  if (op.phase == LaneOp::Phase::offer || rank == team_.rank()) return false;
  if (header_of(channel_.block(rank)).done.load(std::memory_order_acquire) < op.sequence) {
    return false;
  }
  if (op.phase == LaneOp::Phase::gather) {
    return board(rank, op.sequence).sequence.load(std::memory_order_acquire) < op.sequence;
  }
  return op.slots.waits_for_data() && op.slots.waits_for() == rank &&
         !op.slots.has_arrived(channel_);
}

Status Lane::find_stray(const LaneOp& op) const {
  if (op.phase == LaneOp::Phase::rings || op.phase == LaneOp::Phase::mpi) return {};
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
    const Board& posted = board(rank, op.sequence);
    Offer ours = make_offer(op.desc, team_.topology);
    if (posted.sequence.load(std::memory_order_acquire) == op.sequence) {
      if (Status status = compare_offers(rank, posted.offer, ours); !status.ok()) return status;
    }
    for (int index : {rank, team_.rank()}) {
      const auto* slot = reinterpret_cast<const SlotHeader*>(
          channel_.layout().slot(channel_.block(rank), op.sequence, index));
      if (slot->sequence.load(std::memory_order_acquire) != op.sequence) continue;
      Offer theirs;
      theirs.operation = slot->operation;
      theirs.bytes = slot->bytes;
      theirs.root = slot->root;
      theirs.in_place = slot->in_place;
      if (Status status = compare_offers(rank, theirs, ours); !status.ok()) return status;
    }
  }
  return {};
}

} // namespace ferry::core
