// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <memory>

namespace ferry::core {

// Something with operations in flight that other waits must serve, as MPI's progress rule asks.
class Active {
 public:
  Active() = default;
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;
  virtual ~Active() { set_busy(false); }
  // Whether anything in this process is busy.
  [[nodiscard]] static bool any_busy() noexcept {
    return busy_count_.load(std::memory_order_relaxed) > 0;
  }
  // Move on without waiting; returns at once when another thread is at it.
  virtual void serve() = 0;
  [[nodiscard]] bool busy() const noexcept { return busy_.load(std::memory_order_relaxed); }

 protected:
  // By one thread at a time.
  void set_busy(bool busy) noexcept {
    if (busy_.load(std::memory_order_relaxed) == busy) return;
    busy_.store(busy, std::memory_order_relaxed);
    busy_count_.fetch_add(busy ? 1 : -1, std::memory_order_relaxed);
  }

 private:
  static inline constinit std::atomic<int> busy_count_{0};
  std::atomic<bool> busy_{false};
};

// From now on every wait of this process serves it while it is busy. Any thread.
void register_active(const std::shared_ptr<Active>& active);
void serve_all();

} // namespace ferry::core
