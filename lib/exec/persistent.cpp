// SPDX-License-Identifier: MIT
#include "lib/exec/persistent.hpp"

#include <fmt/format.h>
#include <cstring>

#include "lib/exec/graveyard.hpp"

namespace ferry::core {
namespace {

constexpr std::uint64_t kPage = 4096;

// An exchange among all needs two slots in turn; a root whose readers send nothing back, more.
BlockLayout plan_layout(const Schedule& schedule) {
  BlockLayout layout;
  layout.ranks = schedule.ranks;
  if (schedule.path != Path::slots) return layout;
  layout.slot_payload = schedule.slot_bytes;
  layout.slot_count = schedule.operation == Operation::alltoall ? schedule.ranks : 1;
  layout.slot_depth =
      schedule.operation == Operation::broadcast ? static_cast<int>(table().slot_depth) : 2;
  return layout;
}

std::uint64_t stage_offset(const BlockLayout& layout) {
  return (layout.bytes() + kPage - 1) / kPage * kPage;
}

} // namespace

PersistentPlan::PersistentPlan(Team& team, const CollectiveDesc& desc) : team_(team), desc_(desc) {}

PersistentPlan::~PersistentPlan() {
  rings_.reset();
  give_back();
}

void PersistentPlan::give_back() {
  if (block_ == nullptr) return;
  std::byte* block = std::exchange(block_, nullptr);
  if (blocks_.empty()) { // never linked: nobody else knows it
    Heap::instance().release(block);
    return;
  }
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    if (rank == team_.rank()) continue;
    // Pairs with the acquire in reap_blocks().
    header_of(blocks_[static_cast<std::size_t>(rank)])
        .departed.fetch_add(1, std::memory_order_release);
  }
  bury_block(block, static_cast<std::size_t>(team_.ranks() - 1));
}

void PersistentPlan::abandon(const Status& status) {
  broken_ = status;
  rings_.reset();
  block_ = nullptr;
}

Offer PersistentPlan::offer() const {
  return make_offer(desc_, team_.topology);
}

Offer PersistentPlan::compile(std::vector<Offer> offers) {
  Offer mine = offers[static_cast<std::size_t>(team_.rank())];
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    Status status = compare_offers(rank, offers[static_cast<std::size_t>(rank)], mine);
    if (!status.ok()) throw Failure(std::move(status));
  }
  const auto facts = facts_of(offers);
  limits_ = plan_limits(config(), team_.ranks(), team_.topology.oversubscribed);
  PlanInput input = plan_input(team_, desc_, limits_);
  input.facts = facts;
  schedule_ = plan_collective(input);
  why_ = schedule_.path == Path::engine
             ? explain_rings(schedule_, input)
             : fmt::format("{} {}", schedule_.why, decided_by(input, schedule_.path));
  layout_ = plan_layout(schedule_);
  try {
    block_ = static_cast<std::byte*>(
        Heap::instance().allocate(stage_offset(layout_) + schedule_.stage_bytes));
    mine.block = static_cast<std::uint64_t>(block_ - team_.me().heap->base());
    mine.stage = schedule_.stage_bytes > 0 ? mine.block + stage_offset(layout_) : 0;
  } catch (const Failure&) {
    mine.no_memory = 1;
  }
  return mine;
}

std::vector<std::byte*> PersistentPlan::blocks_of(const std::vector<Offer>& offers) const {
  std::vector<std::byte*> blocks;
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    blocks.push_back(
        team_.member(rank).heap->base() + offers[static_cast<std::size_t>(rank)].block);
  }
  return blocks;
}

void PersistentPlan::link(MPI_Comm comm, std::vector<Offer> offers) {
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    if (offers[static_cast<std::size_t>(rank)].no_memory == 0) continue;
    give_back();
    compile_mpi(comm, fmt::format("rank {} has no shared memory left", rank));
    return;
  }
  blocks_ = blocks_of(offers);
  if (schedule_.path == Path::slots) {
    slot_program_ = lower_slots(schedule_, desc_.in_place, desc_.root);
    channel_ = std::make_unique<SlotChannel>(team_, layout_, blocks_);
    return;
  }
  counts_.words = block_ + BlockLayout::signals_offset();
  counts_.base.assign(static_cast<std::size_t>(kSignalWords * team_.ranks()), 0);
  const AddressBook book = make_book(team_, desc_, offers);
  const std::uint64_t stage = stage_capacity(desc_.operation, team_.ranks(), limits_);
  rings_ = std::make_unique<RingPlan>(
      team_, counts_, fmt::format("persistent {} on {}", name_of(desc_.operation), team_.name));
  rings_->bind(
      lower(schedule_, book, config().max_packet_bytes),
      make_windows(team_, desc_, offers, book, stage));
}

void PersistentPlan::compile_local() {
  schedule_ = plan_collective(plan_input(team_, desc_, limits_));
}

void PersistentPlan::compile_mpi(MPI_Comm comm, const std::string& reason) {
  hold_.hold(comm);
  schedule_ = {};
  schedule_.operation = desc_.operation;
  schedule_.path = Path::mpi;
  schedule_.rank = team_.rank();
  schedule_.ranks = team_.ranks();
  schedule_.why = reason;
}

void PersistentPlan::start(MPI_Comm comm) {
  ++epoch_;
  switch (schedule_.path) {
    case Path::local:
      desc_.copy_own_block();
      return;
    case Path::slots:
      slot_run_.begin(slot_program_, epoch_, desc_.send, desc_.recv);
      return;
    case Path::engine:
      rings_->start();
      return;
    case Path::mpi:
      mpi_.start(comm, desc_);
      return;
  }
}

Poll PersistentPlan::progress() {
  switch (schedule_.path) {
    case Path::local:
      return Poll::ready;
    case Path::slots:
      return slot_run_.progress(*channel_);
    case Path::engine:
      return rings_->progress();
    case Path::mpi:
      return mpi_.progress();
  }
  return Poll::ready;
}

const Status& PersistentPlan::status() const {
  if (!broken_.ok()) return broken_;
  static const Status fine;
  switch (schedule_.path) {
    case Path::slots:
      return slot_run_.status();
    case Path::engine:
      return rings_->status();
    case Path::mpi:
      return mpi_.status();
    case Path::local:
      break;
  }
  return fine;
}

std::string PersistentPlan::missing() const {
  if (rings_ == nullptr && channel_ == nullptr && schedule_.path != Path::mpi) {
    return fmt::format(
        "persistent {} on {}: waits for all ranks to make this call", name_of(desc_.operation),
        team_.name);
  }
  if (schedule_.path == Path::engine) {
    return fmt::format("{}, start {}", rings_->missing(), epoch_);
  }
  const int rank = slot_run_.waits_for();
  const bool slots = schedule_.path == Path::slots;
  return fmt::format(
      "persistent {} on {}, start {}: waits for {}", name_of(desc_.operation), team_.name, epoch_,
      slots ? fmt::format("{} of rank {}", slot_run_.step(), rank) : std::string("the MPI below"));
}

std::string PersistentPlan::explain() const {
  const bool planned = schedule_.path == Path::slots || schedule_.path == Path::engine;
  return planned ? why_ : schedule_.why;
}

} // namespace ferry::core
