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

void Communicator::run(LaneOp& op) {
  if (!run_at_once(op)) post(op);
  if (!op.complete()) static_cast<void>(wait(op)); // the status is in op, too
  if (!lets_pass_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  if (broken_.ok()) passes_.store(true, std::memory_order_relaxed);
}

} // namespace ferry::core
