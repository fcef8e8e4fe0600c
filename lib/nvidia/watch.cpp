// SPDX-License-Identifier: MIT
#include "lib/nvidia/watch.hpp"

#include <chrono>
#include <utility>

namespace ferry::nvidia {

// Never destroyed: plans may be freed until the very end of the process, and the thread is
// detached.
Watch& Watch::instance() {
  static Watch* const watch = new Watch;
  return *watch;
}

void Watch::add(const void* owner, std::function<bool()> look) {
  const std::lock_guard lock(mutex_);
  looks_.insert_or_assign(owner, std::move(look));
  if (!running_) std::thread([this] { run(); }).detach();
  running_ = true;
  changed_.notify_one();
}

void Watch::remove(const void* owner) {
  const std::lock_guard lock(mutex_);
  looks_.erase(owner);
}

void Watch::run() {
  constexpr std::chrono::milliseconds kPause{100};
  std::unique_lock lock(mutex_);
  for (; running_;) {
    changed_.wait(lock, [this] { return !looks_.empty(); });
    std::erase_if(looks_, [](const auto& entry) { return !entry.second(); });
    lock.unlock();
    std::this_thread::sleep_for(kPause);
    lock.lock();
  }
}

} // namespace ferry::nvidia
