// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <thread>

namespace ferry::test {

// A backoff that lets others run, and gives up after half a minute.
class Patience {
 public:
  bool operator()() const {
    std::this_thread::yield();
    return std::chrono::steady_clock::now() < end_;
  }

 private:
  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(30);
};

} // namespace ferry::test
