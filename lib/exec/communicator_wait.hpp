// SPDX-License-Identifier: MIT
#pragma once

#include <mutex>
#include <string>

#include "lib/exec/communicator.hpp"

namespace ferry::core {

// What every wait of a communicator serves and says.
class Communicator::Wait final : public WaitContext {
 public:
  Wait(Communicator& owner, const LaneOp* op, const PersistentPlan* plan)
      : owner_(owner), op_(op), plan_(plan) {}
  void poke() override {
    serve_all();
    const std::unique_lock lock(owner_.mutex_, std::try_to_lock);
    if (lock.owns_lock()) owner_.bootstrap_->poke();
  }
  void sleep(double seconds, bool (*ready)(void*), void* look) override {
    if (!owner_.shared_.load(std::memory_order_acquire)) return; // nobody could wake this rank
    if (owner_.network_.load(std::memory_order_relaxed)) return; // nor could another node
    sleep_on(owner_.team_.me().heap->header(), seconds, ready, look);
  }
  Status check_peers() override {
    const std::lock_guard lock(owner_.mutex_);
    owner_.end_misfit();
    return owner_.team_.check_alive();
  }
  std::string what() const override {
    const std::lock_guard lock(owner_.mutex_);
    return op_ != nullptr ? owner_.missing(*op_) : plan_->missing();
  }
  std::string history() const override {
    const std::lock_guard lock(owner_.mutex_);
    return owner_.lane_ != nullptr ? owner_.lane_->history() : std::string();
  }

 private:
  Communicator& owner_;
  const LaneOp* op_;
  const PersistentPlan* plan_;
};

} // namespace ferry::core
