// SPDX-License-Identifier: MIT
// The persistent collectives of a communicator.
#include <algorithm>

#include "lib/exec/communicator.hpp"
#include "lib/exec/communicator_wait.hpp"
#include "lib/exec/graveyard.hpp"

namespace ferry::core {

void Communicator::fail_plan(PersistentPlan& plan, const Status& status) {
  const std::lock_guard lock(mutex_);
  fail(status);
  plan.abandon(status);
}

Status Communicator::wait(PersistentPlan& plan) {
  Wait context(*this, nullptr, &plan);
  const Status status = wait_until(policy(), context, [&] { return look(plan); });
  if (status.ok()) return plan.status();
  fail_plan(plan, status);
  return status;
}

// Offers of all ranks through the bootstrap, waited for like everything else.
std::vector<Offer> Communicator::exchange(std::vector<Offer> mine, const PersistentPlan& plan) {
  struct Flight {
    std::vector<Offer> mine;
    std::vector<Offer> all;
  };
  auto flight = std::make_unique<Flight>();
  flight->mine = std::move(mine);
  flight->all.resize(flight->mine.size() * static_cast<std::size_t>(team_.ranks()));
  bootstrap_->start_allgather(
      flight->mine.data(), flight->mine.size() * sizeof(Offer), flight->all.data());
  Wait context(*this, nullptr, &plan);
  const Status status = wait_until(policy(), context, [&] {
    const std::lock_guard lock(mutex_);
    return bootstrap_->test() ? Poll::ready : Poll::pending;
  });
  if (status.ok()) return std::move(flight->all);
  // The exchange may still be under way, so its memory stays, and no other may begin.
  static_cast<void>(flight.release());
  const std::lock_guard lock(mutex_);
  fail(status);
  throw Failure(status);
}

std::unique_ptr<PersistentPlan> Communicator::make_plan(const CollectiveDesc& desc) {
  reap_blocks();
  auto plan = std::make_unique<PersistentPlan>(team_, desc);
  if (team_.ranks() == 1) {
    plan->compile_local();
    return plan;
  }
  finish_set_up(*plan);
  if (carried_by_mpi()) {
    plan->compile_mpi(comm_, team_.topology.why_not_shared);
  } else if (desc.reduction != nullptr) {
    const PlanLimits limits = plan_limits(config(), ranks(), team_.topology.oversubscribed);
    auto script = std::make_unique<ReductionScript>(desc, rank(), ranks(), limits.slot_bytes);
    std::vector<std::unique_ptr<PersistentPlan>> stages;
    for (std::size_t i = 0; i < script->stages(); ++i) {
      stages.push_back(make_plan(script->stage(i)));
    }
    plan->compile_stages(std::move(script), std::move(stages));
  } else {
    std::vector<Offer> offers = exchange({plan->offer()}, *plan);
    plan->check(offers);
    if (is_exchange(desc)) offers = exchange(plan->pair_offers(), *plan);
    const Offer placed = plan->compile(std::move(offers));
    plan->link(comm_, exchange({placed}, *plan));
  }
  const std::lock_guard lock(mutex_);
  tell(desc, plan->schedule().path, plan->explain());
  return plan;
}

void Communicator::finish_set_up(const PersistentPlan& plan) {
  Wait context(*this, nullptr, &plan);
  const Status status = wait_until(policy(), context, [&] {
    const std::lock_guard lock(mutex_);
    return set_up() ? Poll::ready : Poll::pending;
  });
  const std::lock_guard lock(mutex_);
  if (!status.ok()) fail(status);
  if (!broken_.ok()) throw Failure(broken_);
}

Status Communicator::start(PersistentPlan& plan) {
  const std::lock_guard lock(mutex_);
  if (!broken_.ok()) return broken_;
  if (plan.schedule().path == Path::mpi && detached_) {
    return {ErrorKind::comm, "the communicator of this handle was freed", "free the handle"};
  }
  plan.start(comm_);
  plan.set_active(true);
  plans_.push_back(&plan);
  drive_plans();
  note_busy();
  return {};
}

void Communicator::drive_plans() {
  std::erase_if(plans_, [this](PersistentPlan* plan) {
    if (plan->progress() == Poll::pending) return false;
    plan->set_active(false);
    if (plan->status().kind == ErrorKind::bad_packet) broken_ = plan->status();
    return true;
  });
}

Poll Communicator::look(PersistentPlan& plan) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return Poll::pending;
  if (plan.active() && plans_.size() == 1 && queue_.empty() && mpi_ops_.empty()) {
    drive_plans(); // the usual case: nothing else is in flight here
    note_busy();
  } else if (plan.active()) {
    drive();
  }
  return plan.active() ? Poll::pending : Poll::ready;
}

} // namespace ferry::core
