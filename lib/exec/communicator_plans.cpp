// SPDX-License-Identifier: MIT
// The persistent collectives of a communicator.
#include <algorithm>
#include <cstring>

#include "lib/exec/communicator.hpp"
#include "lib/exec/communicator_wait.hpp"
#include "lib/exec/device_team.hpp"
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

// Bytes of all ranks through the bootstrap, waited for like everything else.
void Communicator::gather(
    const void* mine, std::size_t bytes, void* all, const PersistentPlan& plan) {
  struct Flight {
    std::vector<std::byte> mine;
    std::vector<std::byte> all;
  };
  auto flight = std::make_unique<Flight>();
  const auto* first = static_cast<const std::byte*>(mine);
  flight->mine.assign(first, first + bytes);
  flight->all.resize(bytes * static_cast<std::size_t>(team_.ranks()));
  bootstrap_->start_allgather(flight->mine.data(), bytes, flight->all.data());
  Wait context(*this, nullptr, &plan);
  const Status status = wait_until(policy(), context, [&] {
    const std::lock_guard lock(mutex_);
    return bootstrap_->test() ? Poll::ready : Poll::pending;
  });
  if (status.ok()) {
    std::memcpy(all, flight->all.data(), flight->all.size());
    return;
  }
  // The exchange may still be under way, so its memory stays, and no other may begin.
  static_cast<void>(flight.release());
  const std::lock_guard lock(mutex_);
  fail(status);
  throw Failure(status);
}

std::vector<Offer> Communicator::exchange(
    const std::vector<Offer>& mine, const PersistentPlan& plan) {
  std::vector<Offer> all(mine.size() * static_cast<std::size_t>(team_.ranks()));
  gather(mine.data(), mine.size() * sizeof(Offer), all.data(), plan);
  return all;
}

// Some rank has device memory: its module makes the plan, where every rank can load it and it takes
// such a call. Else each rank with device memory copies to and from the host.
bool Communicator::make_device_plan(PersistentPlan& plan, const std::vector<Offer>& offers) {
  DeviceKind kind = DeviceKind::none;
  for (const Offer& offer : offers) {
    const auto theirs = static_cast<DeviceKind>(offer.facts >> kDeviceShift);
    if (theirs != DeviceKind::none) kind = theirs;
  }
  if (kind == DeviceKind::none) return false;
  std::string why;
  DeviceBackend* backend = device_backend(kind, &why);
  Offer able;
  able.no_memory = backend == nullptr ? 1 : 0;
  bool all_able = true;
  for (const Offer& offer : exchange({able}, plan)) all_able = all_able && offer.no_memory == 0;
  if (all_able) {
    auto team = std::make_unique<SharedDeviceTeam>(
        team_, [this, &plan](const void* mine, std::size_t bytes, void* all) {
          gather(mine, bytes, all, plan);
        });
    try {
      auto device = backend->make_plan(plan.desc(), *team);
      plan.compile_device(std::move(device), std::move(team));
      return true;
    } catch (const Failure& failure) { // alike on all ranks
      why = failure.status().cause;
    }
  } else if (why.empty()) {
    why = "a rank cannot load the module for GPUs";
  }
  plan.bounce(why);
  return false;
}

void Communicator::make_shared_plan(PersistentPlan& plan) {
  std::vector<Offer> offers = exchange({plan.offer()}, plan);
  plan.check(offers);
  if (make_device_plan(plan, offers)) return;
  if (is_exchange(plan.desc())) {
    offers = exchange(plan.pair_offers(), plan);
  } else if (plan.bounced()) {
    offers = exchange({plan.offer()}, plan); // of host memory now
  }
  const Offer placed = plan.compile(std::move(offers));
  plan.link(comm_, exchange({placed}, plan));
}

void Communicator::make_stages(PersistentPlan& plan) {
  plan.bounce("reductions run on the host");
  auto script = make_script(plan.desc());
  std::vector<std::unique_ptr<PersistentPlan>> stages;
  for (std::size_t i = 0; i < script->stages(); ++i) {
    stages.push_back(make_plan(script->stage(i)));
  }
  plan.compile_stages(std::move(script), std::move(stages));
}

std::unique_ptr<PersistentPlan> Communicator::make_plan(const CollectiveDesc& desc) {
  reap_blocks();
  auto plan = std::make_unique<PersistentPlan>(team_, desc);
  if (team_.ranks() == 1) {
    plan->bounce("one rank");
    plan->compile_local();
    return plan;
  }
  finish_set_up(*plan);
  if (carried_by_mpi()) {
    plan->bounce("the MPI below takes host memory");
    compile_beyond(*plan);
  } else if (desc.reduction != nullptr) {
    make_stages(*plan);
  } else {
    make_shared_plan(*plan);
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
  try {
    plan.start(comm_);
  } catch (const Failure& failure) { // of a GPU's runtime
    return failure.status();
  }
  if (lane_ != nullptr) lane_->note_start(plan.desc());
  plan.set_active(true);
  plans_.push_back(&plan);
  drive_plans();
  note_busy();
  return {};
}

Status Communicator::start_on_stream(PersistentPlan& plan, void* stream) {
  const std::lock_guard lock(mutex_);
  if (!broken_.ok()) return broken_;
  return plan.start_on_stream(stream);
}

device::StartHandle Communicator::arm(PersistentPlan& plan, int starts) {
  const std::lock_guard lock(mutex_);
  if (!broken_.ok()) throw Failure(broken_);
  return plan.arm(starts);
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
