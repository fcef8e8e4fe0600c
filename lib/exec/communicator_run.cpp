// SPDX-License-Identifier: MIT
// The short way of a blocking call: where nothing else is under way on the communicator, it is
// begun and looked at without a detour over the queue, as long as spinning pays.
#include <algorithm>
#include <mutex>

#include "device/platform.hpp"
#include "lib/exec/communicator.hpp"

namespace ferry::core {

// The lane is there and has nothing to do.
bool Communicator::idle() const {
  return lane_ != nullptr && queue_.empty() && mpi_ops_.empty() && plans_.empty() && broken_.ok();
}

void Communicator::look_closely(LaneOp& op) {
  constexpr int kEagerLooks = 16; // a pause takes longer than a line needs from core to core
  const int spins = team_.policy.spins;
  const int most = team_.topology.oversubscribed ? std::min(spins, kEagerLooks) : spins;
  lane_->begin(op);
  for (int looks = 0; looks <= most && op.phase == LaneOp::Phase::running; ++looks) {
    if (looks > kEagerLooks) device::cpu_relax();
    lane_->progress(op);
  }
  remember(op);
  if (op.status.kind == ErrorKind::bad_packet) broken_ = op.status;
}

// False when the operation has not begun; else it is complete, or goes on in the queue.
bool Communicator::run_at_once(LaneOp& op) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !idle() || op.desc.reduction != nullptr) return false;
  if (device_kind(op.desc) != DeviceKind::none) return false;
  try {
    look_closely(op);
  } catch (...) {
    queue_.push_back(&op);
    fail_by_exception();
  }
  if (op.complete()) return true;
  queue_.push_back(&op);
  note_busy();
  return true;
}

// Device memory, by a plan that is made when a call comes again and kept for the next ones. Waits
// for all ranks, each of which has one of these calls. False: the host carries it.
bool Communicator::run_by_plan(LaneOp& op) {
  if (op.desc.reduction != nullptr || op.desc.operation == Operation::barrier) return false;
  const PersistentPlan call(team_, op.desc); // for what waits tell
  finish_set_up(call);
  if (carried_by_mpi()) return false;
  std::vector<DeviceCalls::Card> cards(static_cast<std::size_t>(ranks()));
  const DeviceCalls::Card mine = device_calls_->look(op.desc);
  gather(&mine, sizeof(mine), cards.data(), call);
  const DeviceCalls::Decision decision = device_calls_->decide(cards);
  if (decision == DeviceCalls::Decision::host) return false;
  if (decision == DeviceCalls::Decision::make) {
    CollectiveDesc desc = op.desc;
    desc.form = Form::persistent;
    if (!device_calls_->keep(make_plan(desc))) return false;
  }
  PersistentPlan& plan = device_calls_->plan();
  op.status = start(plan);
  if (op.status.ok()) op.status = wait(plan);
  op.path = Path::device;
  op.phase = LaneOp::Phase::complete;
  const std::lock_guard lock(mutex_);
  last_path_ = Path::device;
  last_why_ = nullptr;
  last_text_ = plan.explain() + "; a plan that is kept for calls like this one";
  if (op.status.ok()) {
    tell(op.desc, Path::device, last_text_);
  } else {
    device_calls_->drop();
  }
  return true;
}

void Communicator::run(LaneOp& op) {
  if (device_calls_ != nullptr && run_by_plan(op)) return;
  if (!run_at_once(op)) post(op);
  if (!op.complete()) static_cast<void>(wait(op)); // the status is in op, too
  if (!lets_pass_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  if (broken_.ok()) passes_.store(true, std::memory_order_relaxed);
}

} // namespace ferry::core
