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

std::size_t Lane::KeyHash::operator()(const Key& key) const noexcept {
  constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15u;
  std::uint64_t hash = key.bytes * kMix;
  hash ^= (static_cast<std::uint64_t>(key.root) << 8) +
          (static_cast<std::uint64_t>(key.operation) << 4) + key.bits * 2u +
          (key.own_block ? 1 : 0);
  for (std::uint64_t size : key.sizes) hash = (hash ^ (hash >> 31) ^ size) * kMix;
  return static_cast<std::size_t>(hash ^ (hash >> 29));
}

Lane::Key Lane::key_of(const CollectiveDesc& desc) const {
  Key key{0, desc.root, desc.operation, call_bits(desc), desc.own_block, {}};
  if (!is_exchange(desc)) {
    key.bytes = desc.block_bytes();
    return key;
  }
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    key.sizes.push_back(desc.send_block(rank).bytes());
    key.sizes.push_back(desc.recv_block(rank).bytes());
  }
  return key;
}

Lane::Lane(Team& team, const BlockLayout& layout, std::byte* block)
    : team_(team),
      limits_(plan_limits(config(), team.ranks(), team.topology.oversubscribed)),
      channel_(team, layout, lane_blocks(team)),
      recorder_(header_of(block).recorder),
      pair_board_used_(static_cast<std::size_t>(team.ranks())),
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
  last_rings_.entry = nullptr;
  ring_plans_.clear();
}

Board& Lane::board(int rank, std::uint64_t sequence) const {
  return header_of(channel_.block(rank)).boards[sequence % 2];
}

Board& Lane::pair_board(int owner, std::uint64_t sequence, int reader) const {
  return channel_.layout().pair_board(channel_.block(owner), sequence, reader);
}

// Without a look at each rank's sizes: of a regular call that comes again.
bool Lane::is_last_slot(const CollectiveDesc& desc) const {
  const Key& last = last_slot_key_;
  return last_slot_ != nullptr && !is_exchange(desc) && last.sizes.empty() &&
         last.bytes == desc.block_bytes() && last.root == desc.root &&
         last.operation == desc.operation && last.own_block == desc.own_block &&
         last.bits == call_bits(desc);
}

Lane::SlotEntry& Lane::slot_entry(const CollectiveDesc& desc) {
  if (is_last_slot(desc)) return *last_slot_;
  Key key = key_of(desc);
  if (last_slot_ != nullptr && last_slot_key_ == key) return *last_slot_;
  auto found = slot_plans_.find(key);
  if (found == slot_plans_.end()) {
    if (slot_plans_.size() >= kKeptPlans) slot_plans_.clear();
    ++plan_generation_;
    PlanInput input = plan_input(team_, desc, limits_);
    std::vector<PairPlan> pairs;
    if (is_exchange(desc)) pairs = pairs_of(desc, team_.topology, {});
    input.pairs = pairs;
    input.part = Part::slots;
    const Schedule schedule = plan_collective(input);
    SlotEntry entry{
        lower_slots(schedule, key.bits, desc.root),
        fmt::format("{} {}", schedule.why, decided_by(input, schedule.path))};
    found = slot_plans_.emplace(key, std::move(entry)).first;
  }
  last_slot_key_ = std::move(key);
  last_slot_ = &found->second;
  return *last_slot_;
}

Lane::RingEntry& Lane::ring_entry(const LaneOp& op) {
  const Key key = key_of(op.desc);
  RingEntry entry;
  if (is_exchange(op.desc)) {
    entry.pairs = pairs_of(op.desc, team_.topology, offers_);
  } else {
    entry.facts = facts_of(offers_);
  }
  const auto found = ring_plans_.find(key);
  if (found != ring_plans_.end() && found->second.facts == entry.facts &&
      found->second.pairs == entry.pairs) {
    return found->second;
  }
  if (ring_plans_.size() >= kKeptPlans) ring_plans_.clear();
  ++plan_generation_;
  PlanInput input = plan_input(team_, op.desc, limits_);
  input.facts = entry.facts;
  input.pairs = entry.pairs;
  input.part = Part::transfers;
  PlanInput transfers = input;
  if (!is_exchange(op.desc)) transfers.limits.slot_bytes = 0; // that is decided
  entry.schedule = plan_collective(transfers);
  entry.plan = std::make_unique<RingPlan>(
      team_, counts_, fmt::format("{} on {}", name_of(op.desc.operation), team_.name));
  entry.why = explain_rings(entry.schedule, input);
  return ring_plans_[key] = std::move(entry);
}

void Lane::begin_slots(LaneOp& op) {
  SlotEntry& entry = slot_entry(op.desc);
  op.path = Path::slots;
  op.why = &entry.why;
  const bool mapped =
      has_habit(op.desc) && facts_of(make_offer(op.desc, team_.topology)).recv_mapped;
  op.slots.begin(entry.program, op.sequence, op.desc, mapped);
  op.slots_open = true;
}

void Lane::open_transfers(LaneOp& op) {
  op.path = Path::engine;
  op.why = nullptr;
  op.transfers = LaneOp::Transfers::offer;
}

void Lane::begin_exchange(LaneOp& op) {
  begin_slots(op);
  partners_.clear();
  for (int i = 1; i < team_.ranks(); ++i) {
    const int peer = (team_.rank() + i) % team_.ranks();
    PairPlan pair;
    pair.recv_bytes = op.desc.recv_block(peer).bytes();
    pair.send_bytes = op.desc.in_place ? pair.recv_bytes : op.desc.send_block(peer).bytes();
    const bool nothing = pair.send_bytes == 0 && pair.recv_bytes == 0;
    if (!nothing && !pair_fits_slots(pair, limits_)) partners_.push_back(peer);
  }
  if (!partners_.empty()) open_transfers(op);
}

void Lane::begin(LaneOp& op) {
  op.sequence = ++sequence_;
  if (op.stage == 0) {
    recorder_.note(op.script != nullptr ? op.script->whole() : op.desc, op.sequence);
  }
  op.phase = LaneOp::Phase::running;
  if (is_exchange(op.desc)) {
    begin_exchange(op);
  } else if (goes_through_slots(op.desc)) {
    begin_slots(op);
  } else {
    partners_.clear();
    for (int i = 1; i < team_.ranks(); ++i) {
      partners_.push_back((team_.rank() + i) % team_.ranks());
    }
    open_transfers(op);
  }
}

void Lane::complete(LaneOp& op) {
  channel_.complete(op.sequence);
  op.phase = LaneOp::Phase::complete;
}

void Lane::progress(LaneOp& op) {
  if (op.slots_open) {
    if (op.slots.progress(channel_) == Poll::ready) {
      op.slots_open = false;
      if (op.status.ok()) op.status = op.slots.status();
      if (op.status.ok() && has_habit(op.desc)) {
        habits_.learn(op.desc.operation, op.desc.block_bytes(), op.slots.all_mapped());
      }
    } else {
      op.waits_for = op.slots.waits_for();
    }
  }
  if (op.transfers != LaneOp::Transfers::none) run_transfers(op);
  const bool over = !op.slots_open && op.transfers == LaneOp::Transfers::none;
  if (over && op.phase == LaneOp::Phase::running) complete(op);
}

void Lane::run_transfers(LaneOp& op) {
  if (op.transfers == LaneOp::Transfers::offer) {
    if (!boards_free(op)) return;
    post_offers(op);
    op.transfers = LaneOp::Transfers::gather;
  }
  if (op.transfers == LaneOp::Transfers::gather && gather(op)) start_rings(op);
  if (op.transfers == LaneOp::Transfers::run && op.rings->progress() == Poll::ready) {
    if (op.status.ok()) op.status = op.rings->status();
    op.transfers = LaneOp::Transfers::none;
  }
}

bool Lane::boards_free(LaneOp& op) {
  const auto turn = static_cast<std::size_t>(op.sequence % 2);
  for (int rank : partners_) {
    const std::uint64_t used = is_exchange(op.desc)
                                   ? pair_board_used_[static_cast<std::size_t>(rank)][turn]
                                   : board_used_[turn];
    op.waits_for = rank;
    if (!channel_.completed(rank, used)) return false;
  }
  return true;
}

bool Lane::provide_stage(const CollectiveDesc& desc, bool send_mapped) {
  PlanInput input = plan_input(team_, desc, limits_);
  BufferFacts mine;
  mine.send_mapped = send_mapped;
  if (!may_stage(input, mine)) return true;
  const Operation operation = is_exchange(desc) ? Operation::alltoall : desc.operation;
  const std::uint64_t need = stage_capacity(operation, team_.ranks(), limits_);
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

// What an offer says beyond the call and its buffers.
void Lane::complete_offer(Offer& offer, const LaneOp& op) {
  if (!provide_stage(op.desc, (offer.facts & kSendMapped) != 0)) offer.no_memory = 1;
  offer.block = team_.me().lane_offset;
  offer.stage =
      stage_ != nullptr ? static_cast<std::uint64_t>(stage_ - team_.me().heap->base()) : 0;
}

void Lane::post_offers(LaneOp& op) {
  const auto turn = static_cast<std::size_t>(op.sequence % 2);
  const auto post = [&](Board& mine, Offer offer) {
    complete_offer(offer, op);
    mine.offer = offer;
    // Pairs with the acquire in gather().
    mine.sequence.store(op.sequence, std::memory_order_release);
  };
  if (is_exchange(op.desc)) {
    for (int rank : partners_) {
      pair_board_used_[static_cast<std::size_t>(rank)][turn] = op.sequence;
      post(pair_board(team_.rank(), op.sequence, rank), make_pair_offer(op.desc, rank));
    }
  } else {
    board_used_[turn] = op.sequence;
    post(board(team_.rank(), op.sequence), make_offer(op.desc, team_.topology));
  }
  for (int rank : partners_) team_.wake_rank(rank, true);
}

bool Lane::gather(LaneOp& op) {
  const bool exchange = is_exchange(op.desc);
  for (int rank : partners_) {
    const Board& theirs =
        exchange ? pair_board(rank, op.sequence, team_.rank()) : board(rank, op.sequence);
    op.waits_for = rank;
    if (theirs.sequence.load(std::memory_order_acquire) < op.sequence) return false;
    channel_.note_done(rank, op.sequence - 1);
  }
  for (int rank = 0; exchange && rank < team_.ranks(); ++rank) {
    offers_[static_cast<std::size_t>(rank)] = {};
    offers_[static_cast<std::size_t>(rank)].block = team_.member(rank).lane_offset;
  }
  for (int rank : partners_) {
    const Board& theirs =
        exchange ? pair_board(rank, op.sequence, team_.rank()) : board(rank, op.sequence);
    offers_[static_cast<std::size_t>(rank)] = theirs.offer;
  }
  const Board& mine = exchange ? pair_board(team_.rank(), op.sequence, partners_.front())
                               : board(team_.rank(), op.sequence);
  offers_[static_cast<std::size_t>(team_.rank())] = mine.offer;
  return true;
}

// Do the calls of all partners fit, and can the transfers begin? Of a regular call every rank has
// the same offers in its hands and comes to the same decision; of an exchange both of a pair do.
bool Lane::agree(LaneOp& op) {
  const bool exchange = is_exchange(op.desc);
  bool memory = offers_[static_cast<std::size_t>(team_.rank())].no_memory == 0;
  int lacking = team_.rank();
  for (int rank : partners_) {
    const Offer& theirs = offers_[static_cast<std::size_t>(rank)];
    const Offer& mine = exchange ? pair_board(team_.rank(), op.sequence, rank).offer
                                 : offers_[static_cast<std::size_t>(team_.rank())];
    if (op.status.ok()) op.status = compare_offers(rank, theirs, mine);
    if (theirs.no_memory != 0) lacking = rank;
    memory = memory && theirs.no_memory == 0;
  }
  if (op.status.ok() && has_habit(op.desc)) {
    const bool mapped = std::all_of(offers_.begin(), offers_.end(), [](const Offer& offer) {
      return facts_of(offer).recv_mapped;
    });
    habits_.learn(op.desc.operation, op.desc.block_bytes(), mapped && memory);
  }
  if (op.status.ok() && !memory && exchange) {
    op.status = {
        ErrorKind::no_memory, fmt::format("rank {} has no shared memory left", lacking),
        "raise the limits of /dev/shm and memory, or lower FERRY_STAGE_BYTES"};
  } else if (op.status.ok() && !memory) {
    op.phase = LaneOp::Phase::mpi;
  }
  return op.status.ok() && memory;
}

bool Lane::comes_again(const CollectiveDesc& desc) const {
  const LastRings& last = last_rings_;
  return last.entry != nullptr && !is_exchange(desc) && last.send == desc.send &&
         last.recv == desc.recv && last.own_block == desc.own_block &&
         last.send_layout == desc.send_layout && last.recv_layout == desc.recv_layout &&
         last.offers == offers_;
}

// The plan of this call with its packets made for these buffers.
Lane::RingEntry& Lane::bound_entry(const LaneOp& op) {
  if (comes_again(op.desc)) return *last_rings_.entry;
  last_rings_.entry = nullptr;
  RingEntry& entry = ring_entry(op);
  AddressBook book = make_book(team_, op.desc, offers_);
  if (entry.book != book) {
    entry.book = std::move(book);
    const Operation operation = is_exchange(op.desc) ? Operation::alltoall : op.desc.operation;
    const std::uint64_t stage = stage_capacity(operation, team_.ranks(), limits_);
    entry.plan->bind(
        lower(entry.schedule, entry.book, config().max_packet_bytes),
        make_windows(team_, op.desc, offers_, entry.book, stage));
  }
  if (!is_exchange(op.desc)) {
    last_rings_ = {&entry,
                   op.desc.send,
                   op.desc.recv,
                   op.desc.send_layout,
                   op.desc.recv_layout,
                   op.desc.own_block,
                   offers_};
  }
  return entry;
}

void Lane::start_rings(LaneOp& op) {
  if (!agree(op)) {
    op.transfers = LaneOp::Transfers::none;
    return;
  }
  RingEntry& entry = bound_entry(op);
  op.why = &entry.why;
  op.rings = entry.plan.get();
  op.rings->start();
  op.transfers = LaneOp::Transfers::run;
}

} // namespace ferry::core
