// SPDX-License-Identifier: MIT
#include "lib/exec/communicator.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstdio>

#include "lib/base/clock.hpp"
#include "lib/base/inside.hpp"
#include "lib/exec/communicator_wait.hpp"
#include "lib/exec/graveyard.hpp"

namespace ferry::core {
namespace {

constexpr unsigned kLooksPerPoke = 64; // of a user who tests in a loop
constexpr double kMisfitSeconds = 0.1; // between two looks for calls that do not fit

} // namespace

Communicator::Communicator(
    std::unique_ptr<Bootstrap> bootstrap, MPI_Comm comm, std::string name, bool threaded)
    : mutex_(threaded), bootstrap_(std::move(bootstrap)), comm_(comm) {
  team_.name = std::move(name);
  team_.topology.rank = bootstrap_->rank();
  team_.topology.ranks = bootstrap_->size();
  reap_blocks();
  if (team_.ranks() == 1) {
    ready_ = true;
    return;
  }
  if (config().device_calls == DeviceCallChoice::plans) {
    device_calls_ = std::make_unique<DeviceCalls>();
  }
  set_up_ = std::make_unique<SetUp>(*bootstrap_, team_, lane_layout(config(), team_.ranks()));
}

Communicator::~Communicator() = default;

// Without the lock: MPI may free the communicator inside a call that this class makes under it.
void Communicator::detach() {
  detached_ = true;
  bootstrap_->detach();
}

bool Communicator::set_up() {
  if (ready_) return true;
  if (!broken_.ok()) throw Failure(broken_);
  if (inside.mpi_closed) return false; // its exchanges are made, and freed, by MPI
  try {
    if (set_up_->progress() == Poll::pending) return false;
  } catch (const Failure& failure) {
    fail(failure.status()); // a set-up that ended so is not looked at again
    throw;
  }
  if (team_.topology.shared) {
    const BlockLayout layout = lane_layout(config(), team_.ranks());
    lane_ = std::make_unique<Lane>(team_, layout, set_up_->take_lane_block());
    shared_.store(true, std::memory_order_release);
  }
  if (auto found = set_up_->take_nodes()) {
    nodes_ = std::make_unique<NodeTeam>(team_, *bootstrap_, std::move(*found));
    // Ranks without mates have nobody to wake them.
    shared_.store(nodes_->mates().size() > 1, std::memory_order_release);
  }
  lets_pass_.store(set_up_->lets_pass(), std::memory_order_relaxed);
  set_up_.reset();
  ready_ = true;
  if (lane_ == nullptr) settle();
  return true;
}

void Communicator::post(LaneOp& op) {
  const std::lock_guard lock(mutex_);
  op.phase = LaneOp::Phase::queued;
  if (device_kind(op.desc) != DeviceKind::none) bounce(op);
  if (!broken_.ok()) {
    op.status = broken_;
    op.phase = LaneOp::Phase::complete;
    return;
  }
  if (team_.ranks() == 1) {
    op.desc.copy_own_block(0);
    end_bounce(op);
    static const std::string kAlone = "one rank: the own block only";
    op.why = &kAlone;
    op.path = Path::local;
    remember(op);
    op.phase = LaneOp::Phase::complete;
    return;
  }
  if (carried_by_mpi()) {
    if (const std::string* below = post_nodes(op); below != nullptr) {
      begin_mpi(op, below);
      note_busy();
      return;
    }
  }
  if (op.complete()) return; // its exchanges could not be set up
  queue_.push_back(&op);
  if (queue_.size() == 1) drive();
  if (!ready_ && !queue_.empty()) hold_.hold(comm_);
  note_busy();
}

// Device memory of a blocking or non-blocking call goes through host memory.
void Communicator::bounce(LaneOp& op) {
  op.bounce = DeviceBounce::make(op.desc, rank(), ranks());
  op.bounce->load();
  op.desc = op.bounce->host();
}

void Communicator::end_bounce(LaneOp& op) {
  if (op.bounce == nullptr) return;
  if (op.status.ok()) op.status = op.bounce->store();
  op.bounce.reset();
}

void Communicator::begin_mpi(LaneOp& op, const std::string* why) {
  op.path = Path::mpi;
  op.why = why;
  remember(op);
  op.phase = LaneOp::Phase::mpi;
  op.mpi.start(comm_, op.desc);
  mpi_ops_.push_back(&op);
}

// Moves everything on as far as it goes without waiting. The lock is held.
void Communicator::drive() {
  drive_plans();
  std::erase_if(mpi_ops_, [this](LaneOp* op) {
    if (op->mpi.progress() == Poll::pending) return false;
    op->status = op->mpi.status();
    op->phase = LaneOp::Phase::complete;
    end_bounce(*op);
    return true;
  });
  try {
    if (!queue_.empty() && !set_up()) return;
    for (; !queue_.empty() && advance(*queue_.front()); queue_.pop_front()) {
      if (queue_.front()->complete()) end_bounce(*queue_.front());
    }
  } catch (...) {
    fail_by_exception();
  }
  note_busy();
  if (queue_.empty() && mpi_ops_.empty()) hold_.release();
}

// Between nodes a reduction is one stage, or is not theirs.
std::unique_ptr<ReductionScript> Communicator::make_script(const CollectiveDesc& desc) {
  const PlanLimits limits = plan_limits(config(), ranks(), team_.topology.oversubscribed);
  const std::uint64_t small = nodes_ != nullptr ? nodes_->limits().reduce_bytes : limits.slot_bytes;
  return std::make_unique<ReductionScript>(desc, rank(), ranks(), small, nodes_ != nullptr);
}

// A reduction begins with its first stage; blocking calls that repeat each other share a script.
void Communicator::begin_script(LaneOp& op) {
  const CollectiveDesc& desc = op.desc;
  const bool blocking = desc.form == Form::blocking;
  if (blocking && script_ != nullptr && script_->fits(desc)) {
    op.script = script_;
  } else {
    op.script = make_script(desc);
    if (blocking) script_ = op.script;
  }
  op.stage = 0;
  op.desc = op.script->stage(0);
}

// The stage that is under way has ended: true when it was the last one, or failed.
bool Communicator::end_stage(LaneOp& op) {
  if (op.script == nullptr) return true;
  if (op.status.ok()) op.status = op.script->finish(op.stage);
  if (!op.status.ok() || ++op.stage == op.script->stages()) return true;
  op.desc = op.script->stage(op.stage);
  op.phase = LaneOp::Phase::queued;
  return false;
}

// The lane cannot carry this operation. True when it leaves the queue.
bool Communicator::hand_over(LaneOp& op) {
  static const std::string kNoStage = "a rank has no shared memory left for this call";
  if (detached_) {
    op.status = {ErrorKind::comm, "the communicator was freed before this call could begin", ""};
    op.phase = LaneOp::Phase::complete;
    return true;
  }
  if (op.script == nullptr) {
    begin_mpi(op, &kNoStage);
    return true;
  }
  op.mpi.start(comm_, op.desc); // further stages follow, so it stays in front
  op.stage_below = true;
  return false;
}

// Moves the stage under way, or the whole of an operation without any. It is over when the
// operation is complete, and has left when it is with the MPI below.
void Communicator::advance_stage(LaneOp& op) {
  if (op.stage_below) {
    if (op.mpi.progress() == Poll::pending) return;
    op.stage_below = false;
    op.status = op.mpi.status();
    op.phase = LaneOp::Phase::complete;
    return;
  }
  if (op.phase == LaneOp::Phase::queued) {
    if (op.desc.reduction != nullptr) begin_script(op);
    lane_->begin(op);
  }
  lane_->progress(op);
  remember(op);
  if (op.status.kind == ErrorKind::bad_packet) broken_ = op.status;
}

// True when the operation at the front of the queue leaves it.
bool Communicator::advance(LaneOp& op) {
  if (lane_ == nullptr) {
    if (inside.mpi_closed) return false; // goes on with the next look from outside
    return advance_nodes(op);
  }
  for (bool over = false; over == false; over = end_stage(op)) { // one round a stage
    if (!op.stage_over) advance_stage(op);
    if (op.phase == LaneOp::Phase::mpi) {
      if (inside.mpi_closed) return false; // begins with the next look from outside
      lane_->complete(op);
      return hand_over(op);
    }
    op.stage_over = op.stage_over || op.complete();
    if (!op.stage_over) return false;
    if (op.script != nullptr && inside.mpi_closed) { // the arithmetic is done by MPI
      op.phase = LaneOp::Phase::running;
      return false;
    }
    op.stage_over = false;
  }
  op.phase = LaneOp::Phase::complete;
  return true;
}

Poll Communicator::look(LaneOp& op) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return Poll::pending;
  if (!op.complete()) drive();
  return op.complete() ? Poll::ready : Poll::pending;
}

void Communicator::serve() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) drive();
}

// Nothing is known about the peers any more: everything in flight ends with this status.
void Communicator::fail(const Status& status) {
  broken_ = status;
  if (lane_ != nullptr) lane_->abandon();
  if (nodes_ != nullptr) nodes_->abandon();
  for (LaneOp* op : queue_) {
    op->status = status;
    op->phase = LaneOp::Phase::complete;
  }
  queue_.clear();
  for (LaneOp* op : mpi_ops_) {
    op->status = status;
    op->phase = LaneOp::Phase::complete;
  }
  mpi_ops_.clear();
  for (PersistentPlan* plan : plans_) {
    plan->abandon(status);
    plan->set_active(false);
  }
  plans_.clear();
}

// Called where an exception is caught.
void Communicator::fail_by_exception() {
  try {
    throw;
  } catch (const Failure& failure) {
    fail(failure.status());
  } catch (const std::exception& error) {
    fail({ErrorKind::other, error.what(), "please report this"});
  }
}

std::string Communicator::missing(const LaneOp& op) const {
  if (op.phase == LaneOp::Phase::mpi) return "the MPI below on " + team_.name;
  if (op.nodes != nullptr && op.phase == LaneOp::Phase::running) {
    return fmt::format(
        "{} on {}: waits for {}", name_of(op.desc.operation), team_.name,
        op.nodes->missing(nodes_->mates()));
  }
  if (lane_ != nullptr && op.phase != LaneOp::Phase::queued) {
    const bool stage = op.script != nullptr;
    return (stage ? std::string(name_of(op.script->whole().operation)) + ": " : std::string()) +
           lane_->missing(op);
  }
  if (set_up_ != nullptr) {
    const int rank = set_up_->waits_for();
    return fmt::format(
        "{} on {}: waits for {} to make the first call there", name_of(op.desc.operation),
        team_.name, rank < 0 ? std::string("all ranks") : fmt::format("rank {}", rank));
  }
  return fmt::format("{} on {}: waits for its turn", name_of(op.desc.operation), team_.name);
}

WaitPolicy Communicator::policy() {
  const std::lock_guard lock(mutex_);
  return team_.policy;
}

Status Communicator::wait(LaneOp& op) {
  Wait context(*this, &op, nullptr);
  const Status status = wait_until(policy(), context, [&] { return look(op); });
  if (!status.ok()) {
    const std::lock_guard lock(mutex_);
    fail(status);
  }
  return op.status;
}

// Ends the operation under way when another rank calls something else under its number; that rank
// finds the same. The next call starts afresh. The lock is held.
void Communicator::end_misfit() {
  if (queue_.empty()) return;
  LaneOp& op = *queue_.front();
  if (op.phase == LaneOp::Phase::queued) return;
  if (lane_ == nullptr) {
    // What it has begun with other nodes cannot be taken back.
    if (const Status status = op.nodes->compare(nodes_->mates()); !status.ok()) fail(status);
    return;
  }
  Status status = lane_->find_stray(op);
  if (status.ok()) return;
  op.status = std::move(status);
  lane_->complete(op);
  queue_.pop_front();
  drive();
}

// Once per operation, as soon as its path is known.
void Communicator::remember(LaneOp& op) {
  if (op.why == nullptr || op.told) return;
  op.told = true;
  last_path_ = op.path;
  std::uint64_t generation = lane_ != nullptr ? lane_->plan_generation() : 0;
  if (nodes_ != nullptr) generation = nodes_->plan_generation();
  if (op.why != last_why_ || generation != last_generation_) {
    last_why_ = op.why;
    last_generation_ = generation;
    last_text_ = *op.why;
    tell(op.script != nullptr ? op.script->whole() : op.desc, op.path, last_text_);
  }
  if (op.desc.form == Form::nonblocking) op.why_text = *op.why;
}

// FERRY_VERBOSE: what was chosen, each choice once; on rank 0 (1) or everywhere (2).
void Communicator::tell(const CollectiveDesc& desc, Path path, const std::string& why) {
  constexpr std::size_t kMostLines = 256;
  if (config().verbose == 0 || (config().verbose == 1 && rank() != 0)) return;
  const std::string line = fmt::format(
      "{}{}: {}: {}", desc.form == Form::persistent ? "persistent " : "", name_of(desc.operation),
      name_of(path), why);
  if (told_.size() >= kMostLines || !told_.insert(line).second) return;
  std::fprintf(
      stderr, "ferry: rank %d of %d, %s: %s\n", rank(), ranks(), team_.name.c_str(), line.c_str());
}

std::string Communicator::explain_last() {
  const std::lock_guard lock(mutex_);
  if (last_text_.empty()) return "local: no collective has run on this communicator yet";
  return fmt::format("{}: {}", name_of(last_path_), last_text_);
}

std::string Communicator::explain(const LaneOp& op) {
  const std::lock_guard lock(mutex_);
  if (!op.why_text.empty()) return fmt::format("{}: {}", name_of(op.path), op.why_text);
  return fmt::format("{}: waits for its turn", name_of(op.path));
}

void Communicator::poke() {
  if (++pokes_ % kLooksPerPoke != 0) return;
  serve_all();
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  bootstrap_->poke();
  const double now = now_seconds();
  if (now < next_misfit_look_) return;
  next_misfit_look_ = now + kMisfitSeconds;
  end_misfit();
  drive();
  const Status alive = busy() ? team_.check_alive() : Status{};
  if (!alive.ok()) fail(alive);
}

} // namespace ferry::core
