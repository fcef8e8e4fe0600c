// SPDX-License-Identifier: MIT
#pragma once

#include <mutex>

namespace ferry::core {

// The lock of a communicator. Where MPI promises that only one thread calls at a time it costs
// nothing: it is never taken then.
class DriveLock {
 public:
  explicit DriveLock(bool threaded) : threaded_(threaded) {}
  void lock() {
    if (threaded_) mutex_.lock();
  }
  bool try_lock() { return !threaded_ || mutex_.try_lock(); }
  void unlock() {
    if (threaded_) mutex_.unlock();
  }

 private:
  const bool threaded_;
  std::mutex mutex_;
};

} // namespace ferry::core
