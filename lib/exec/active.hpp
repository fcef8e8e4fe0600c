// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <memory>

namespace ferry::core {

// Something with operations in flight that other waits must serve, as MPI's progress rule asks.
class Active {
 public:
  virtual ~Active() = default;
  // Move on without waiting; returns at once when another thread is at it.
  virtual void serve() = 0;
  [[nodiscard]] bool busy() const noexcept { return busy_.load(std::memory_order_relaxed); }

 protected:
  void set_busy(bool busy) noexcept { busy_.store(busy, std::memory_order_relaxed); }

 private:
  std::atomic<bool> busy_{false};
};

// From now on every wait of this process serves it while it is busy. Any thread.
void register_active(const std::shared_ptr<Active>& active);
void serve_all();

} // namespace ferry::core
