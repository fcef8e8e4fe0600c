// SPDX-License-Identifier: MIT
#include "lib/exec/persistent.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include "lib/base/inside.hpp"
#include "lib/exec/graveyard.hpp"

namespace ferry::core {
namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t stage_offset(const BlockLayout& layout) {
  return (layout.bytes() + kPage - 1) / kPage * kPage;
}

std::uint8_t device_bits(const CollectiveDesc& desc) {
  return static_cast<std::uint8_t>(static_cast<int>(device_kind(desc)) << kDeviceShift);
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
  for (const auto& stage : stages_) stage->abandon(status);
  broken_ = status;
  rings_.reset();
  block_ = nullptr;
  if (nodes_ != nullptr) nodes_->memory->abandon();
}

Offer PersistentPlan::offer() const {
  if (!is_exchange(desc_)) {
    Offer offer = make_offer(desc_, team_.topology);
    offer.facts = static_cast<std::uint8_t>(offer.facts | device_bits(desc_));
    return offer;
  }
  Offer offer; // the call alone: sizes are a matter of pairs
  offer.operation = static_cast<std::uint8_t>(desc_.operation);
  offer.root = desc_.root;
  offer.in_place = call_bits(desc_);
  offer.facts = device_bits(desc_);
  return offer;
}

std::vector<Offer> PersistentPlan::pair_offers() const {
  std::vector<Offer> offers;
  for (int peer = 0; peer < team_.ranks(); ++peer) offers.push_back(make_pair_offer(desc_, peer));
  return offers;
}

void PersistentPlan::check(const std::vector<Offer>& offers) const {
  const Offer& mine = offers[static_cast<std::size_t>(team_.rank())];
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    Status status = compare_offers(rank, offers[static_cast<std::size_t>(rank)], mine);
    if (!status.ok()) throw Failure(std::move(status));
  }
}

// Every rank looks at every pair, so all of them find the same.
void PersistentPlan::check_pairs(const std::vector<Offer>& all) const {
  const auto n = static_cast<std::size_t>(team_.ranks());
  for (std::size_t from = 0; from < n; ++from) {
    for (std::size_t to = 0; to < n; ++to) {
      const Offer& out = all[from * n + to];
      const Offer& in = all[to * n + from];
      if (from == to || out.send_bytes == in.recv_bytes) continue;
      throw Failure(
          ErrorKind::mismatch,
          fmt::format(
              "rank {} sends {} bytes to rank {}, which expects {}", from, out.send_bytes, to,
              in.recv_bytes),
          "make the same call with matching counts and types on every rank");
    }
  }
}

void PersistentPlan::plan_schedule() {
  PlanInput input = plan_input(team_, desc_, limits_);
  std::vector<BufferFacts> facts;
  std::vector<PairPlan> pairs;
  if (is_exchange(desc_)) {
    pairs = pairs_of(desc_, team_.topology, offers_);
  } else {
    facts = facts_of(offers_);
  }
  input.facts = facts;
  input.pairs = pairs;
  schedule_ = plan_collective(input);
  why_ = schedule_.path == Path::engine
             ? explain_rings(schedule_, input)
             : fmt::format("{} {}", schedule_.why, decided_by(input, schedule_.path));
}

bool PersistentPlan::uses_slots() const {
  return schedule_.path == Path::slots || schedule_.slot_count > 0;
}

// Ranks that all hear from each other need two slots in turn; writers whose readers send nothing
// back, more. Alike on all ranks, since peers find their way by it.
void PersistentPlan::plan_layout() {
  layout_ = {};
  layout_.ranks = team_.ranks();
  if (is_exchange(desc_)) {
    if (widest_slot_ == 0) return;
    layout_.slot_payload = widest_slot_;
    layout_.slot_count = team_.ranks();
    layout_.slot_depth = desc_.operation == Operation::alltoall ? 2 : 4;
  } else if (schedule_.path == Path::slots) {
    layout_.slot_payload = schedule_.slot_bytes;
    layout_.slot_count = desc_.operation == Operation::alltoall ? team_.ranks() : 1;
    layout_.slot_depth =
        desc_.operation == Operation::broadcast ? static_cast<int>(table().slot_depth) : 2;
  }
}

Offer PersistentPlan::compile(std::vector<Offer> offers) {
  const auto n = static_cast<std::size_t>(team_.ranks());
  const auto me = static_cast<std::size_t>(team_.rank());
  limits_ = plan_limits(config(), team_.ranks(), team_.topology.oversubscribed);
  if (is_exchange(desc_)) {
    check_pairs(offers);
    for (std::size_t from = 0; from < n; ++from) {
      for (std::size_t to = 0; to < n; ++to) {
        const Offer& offer = offers[from * n + to];
        const std::uint64_t widest = std::max(offer.send_bytes, offer.recv_bytes);
        if (from != to && widest <= limits_.slot_bytes) {
          widest_slot_ = std::max(widest_slot_, widest);
        }
      }
      offers_.push_back(offers[from * n + me]);
    }
  } else {
    offers_ = std::move(offers);
  }
  plan_schedule();
  plan_layout();
  Offer mine = offers_[me];
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

void PersistentPlan::link_slots() {
  slot_program_ = lower_slots(schedule_, call_bits(desc_), desc_.root);
  channel_ = std::make_unique<SlotChannel>(team_, layout_, blocks_);
}

void PersistentPlan::link_rings() {
  counts_.words = block_ + BlockLayout::signals_offset();
  counts_.base.assign(static_cast<std::size_t>(kSignalWords * team_.ranks()), 0);
  const AddressBook book = make_book(team_, desc_, offers_);
  const Operation operation = is_exchange(desc_) ? Operation::alltoall : desc_.operation;
  const std::uint64_t stage = stage_capacity(operation, team_.ranks(), limits_);
  rings_ = std::make_unique<RingPlan>(
      team_, counts_, fmt::format("persistent {} on {}", name_of(desc_.operation), team_.name));
  rings_->bind(
      lower(schedule_, book, config().max_packet_bytes),
      make_windows(team_, desc_, offers_, book, stage));
}

void PersistentPlan::link(MPI_Comm comm, const std::vector<Offer>& placed) {
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    if (placed[static_cast<std::size_t>(rank)].no_memory == 0) continue;
    give_back();
    compile_mpi(comm, fmt::format("rank {} has no shared memory left", rank));
    return;
  }
  for (int rank = 0; rank < team_.ranks(); ++rank) {
    Offer& offer = offers_[static_cast<std::size_t>(rank)];
    offer.block = placed[static_cast<std::size_t>(rank)].block;
    offer.stage = placed[static_cast<std::size_t>(rank)].stage;
    blocks_.push_back(team_.member(rank).heap->base() + offer.block);
  }
  if (uses_slots()) link_slots();
  if (schedule_.path == Path::engine) link_rings();
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

void PersistentPlan::compile_device(
    std::unique_ptr<DevicePlan> device, std::unique_ptr<DeviceTeam> team) {
  device_team_ = std::move(team);
  device_ = std::move(device);
  schedule_ = {};
  schedule_.operation = desc_.operation;
  schedule_.path = Path::device;
  schedule_.rank = team_.rank();
  schedule_.ranks = team_.ranks();
  schedule_.why = device_->explain();
}

void PersistentPlan::bounce(const std::string& reason) {
  bounce_reason_ = reason;
  bounce_ = DeviceBounce::make(desc_, team_.rank(), team_.ranks());
  if (bounce_ != nullptr) desc_ = bounce_->host();
}

Status PersistentPlan::start_on_stream(void* stream) {
  if (device_ == nullptr) {
    return {
        ErrorKind::request, "the handle is no plan of a GPU",
        "start it with ferry_start; ferry_explain tells why it runs on the host"};
  }
  try {
    device_->start_on_stream(stream);
  } catch (const Failure& failure) {
    return failure.status();
  }
  return {};
}

void PersistentPlan::compile_nodes(
    std::unique_ptr<NodeHandle> nodes, const std::vector<int>& mates) {
  nodes_ = std::move(nodes);
  mates_ = mates;
  schedule_ = {};
  schedule_.operation = desc_.operation;
  schedule_.path = Path::nodes;
  schedule_.rank = team_.rank();
  schedule_.ranks = team_.ranks();
  schedule_.why = nodes_->op->plan().why;
}

void PersistentPlan::compile_stages(
    std::unique_ptr<ReductionScript> script, std::vector<std::unique_ptr<PersistentPlan>> stages) {
  script_ = std::move(script);
  stages_ = std::move(stages);
  schedule_ = stages_.front()->schedule();
  schedule_.operation = desc_.operation;
  schedule_.why = stages_.front()->explain();
  for (std::size_t i = 1; i < stages_.size(); ++i) {
    if (stages_[i]->schedule().path == Path::engine) schedule_.path = Path::engine;
    schedule_.why += "; then " + stages_[i]->explain();
  }
}

Poll PersistentPlan::progress_stages() {
  for (; stage_ < stages_.size(); ++stage_) {
    PersistentPlan& stage = *stages_[stage_];
    if (stage.progress() == Poll::pending) return Poll::pending;
    if (inside.mpi_closed) return Poll::pending; // the arithmetic is done by MPI
    stage_status_ = stage.status();
    if (stage_status_.ok()) stage_status_ = script_->finish(stage_);
    if (!stage_status_.ok()) return Poll::ready;
    if (stage_ + 1 < stages_.size()) stages_[stage_ + 1]->start(comm_);
  }
  return Poll::ready;
}

void PersistentPlan::start(MPI_Comm comm) {
  ++epoch_;
  if (bounce_ != nullptr) bounce_->load();
  if (device_ != nullptr) {
    device_->start();
    return;
  }
  if (script_ != nullptr) {
    comm_ = comm;
    stage_ = 0;
    stage_status_ = {};
    stages_.front()->start(comm);
    return;
  }
  if (schedule_.path == Path::local) desc_.copy_own_block(0);
  if (schedule_.path == Path::mpi) mpi_.start(comm, desc_);
  if (nodes_ != nullptr) nodes_->op->start();
  slots_open_ = channel_ != nullptr;
  rings_open_ = rings_ != nullptr;
  if (slots_open_) slot_run_.begin(slot_program_, epoch_, desc_);
  if (rings_open_) rings_->start();
}

Poll PersistentPlan::progress_nodes() {
  try { // inside of the MPI below it waits for the next look from outside
    if (inside.mpi_closed || nodes_->op->progress() == Poll::pending) return Poll::pending;
    stage_status_ = nodes_->op->status();
  } catch (const Failure& failure) {
    abandon(failure.status());
  }
  return Poll::ready;
}

bool PersistentPlan::on_network() const {
  if (script_ != nullptr) return stage_ < stages_.size() && stages_[stage_]->on_network();
  return schedule_.path == Path::mpi || (nodes_ != nullptr && nodes_->op->in_exchange());
}

Poll PersistentPlan::progress() {
  if (advance() == Poll::pending) return Poll::pending;
  if (bounce_ != nullptr) bounce_status_ = bounce_->store();
  return Poll::ready;
}

Poll PersistentPlan::advance() {
  if (device_ != nullptr) return device_->progress();
  if (script_ != nullptr) return progress_stages();
  if (schedule_.path == Path::mpi) return mpi_.progress();
  if (nodes_ != nullptr) return progress_nodes();
  if (slots_open_ && slot_run_.progress(*channel_) == Poll::ready) {
    channel_->complete(epoch_);
    slots_open_ = false;
  }
  if (rings_open_ && rings_->progress() == Poll::ready) rings_open_ = false;
  return slots_open_ || rings_open_ ? Poll::pending : Poll::ready;
}

const Status& PersistentPlan::status() const {
  if (!broken_.ok()) return broken_;
  static const Status fine;
  if (device_ != nullptr) return device_->status();
  if (!bounce_status_.ok()) return bounce_status_;
  if (script_ != nullptr || nodes_ != nullptr) return stage_status_;
  if (schedule_.path == Path::mpi) return mpi_.status();
  if (channel_ != nullptr && !slot_run_.status().ok()) return slot_run_.status();
  return rings_ != nullptr ? rings_->status() : fine;
}

std::string PersistentPlan::missing() const {
  if (device_ != nullptr) return device_->missing();
  if (script_ != nullptr && stage_ < stages_.size()) {
    return fmt::format("{}: {}", name_of(desc_.operation), stages_[stage_]->missing());
  }
  if (nodes_ != nullptr) {
    return fmt::format(
        "persistent {} on {}, start {}: waits for {}", name_of(desc_.operation), team_.name, epoch_,
        nodes_->op->missing(mates_));
  }
  if (rings_ == nullptr && channel_ == nullptr && schedule_.path != Path::mpi) {
    return fmt::format(
        "persistent {} on {}: waits for all ranks to make this call", name_of(desc_.operation),
        team_.name);
  }
  if (rings_ != nullptr && !slots_open_) {
    return fmt::format("{}, start {}", rings_->missing(), epoch_);
  }
  const int rank = slot_run_.waits_for();
  const bool slots = schedule_.path != Path::mpi;
  return fmt::format(
      "persistent {} on {}, start {}: waits for {}", name_of(desc_.operation), team_.name, epoch_,
      slots ? fmt::format("{} of rank {}", slot_run_.step(), rank) : std::string("the MPI below"));
}

std::string PersistentPlan::explain() const {
  if (bounce_ != nullptr) {
    return explain_host() + "; device memory goes through the host: " + bounce_reason_;
  }
  return explain_host();
}

std::string PersistentPlan::explain_host() const {
  if (script_ != nullptr) return schedule_.why;
  const bool planned = schedule_.path == Path::slots || schedule_.path == Path::engine;
  return planned ? why_ : schedule_.why;
}

} // namespace ferry::core
