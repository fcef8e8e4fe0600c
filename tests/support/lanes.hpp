// SPDX-License-Identifier: MIT
#pragma once

// Waves and workgroups of the host: one thread for each lane.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "device/scope.hpp"

namespace ferry::test {

// Where lanes meet, any number of times.
class LaneGroup {
 public:
  explicit LaneGroup(std::uint32_t size) : words_(size) {
    lanes_ = {size, [](void* self) { static_cast<LaneGroup*>(self)->meet(); }, this, words_.data()};
  }
  LaneGroup(const LaneGroup&) = delete;
  LaneGroup& operator=(const LaneGroup&) = delete;
  [[nodiscard]] const device::HostLanes& lanes() const { return lanes_; }
  [[nodiscard]] std::uint64_t meetings() const { return meetings_; }

 private:
  void meet() {
    std::unique_lock lock(mutex_);
    const std::uint64_t meeting = meetings_;
    if (++arrived_ == lanes_.size) {
      arrived_ = 0;
      ++meetings_;
      all_here_.notify_all();
      return;
    }
    all_here_.wait(lock, [&] { return meetings_ != meeting; });
  }

  device::HostLanes lanes_;
  std::vector<std::uint64_t> words_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::uint32_t arrived_ = 0;
  std::uint64_t meetings_ = 0;
};

// fn(scope) on each lane of one Wave or Workgroup; returns when all are done. A Thread is this one.
template <class Scope, class Fn>
void run_lanes(std::uint32_t size, const Fn& fn) {
  if constexpr (std::is_same_v<Scope, device::Thread>) {
    fn(Scope{});
  } else {
    LaneGroup group(size);
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 1; rank < size; ++rank) {
      threads.emplace_back([&group, &fn, rank] { fn(Scope(group.lanes(), rank)); });
    }
    fn(Scope(group.lanes(), 0));
  }
}

} // namespace ferry::test
