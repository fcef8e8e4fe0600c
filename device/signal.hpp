// SPDX-License-Identifier: MIT
#pragma once

// Signals are 64-bit counters with one writer. They only grow and are never reset, so a waiter asks
// for "at least", and a value that was passed by is not missed.

#include <cstdint>

#include "platform.hpp"

namespace ferry::device {

// A backoff that pauses briefly between looks and gives up after a number of them. Any callable
// that returns false to give up may take its place.
class Attempts {
 public:
  FERRY_DEVICE_FN explicit Attempts(std::uint64_t budget) : left_(budget) {}
  FERRY_DEVICE_FN bool operator()() {
    if (left_ == 0) return false;
    --left_;
    cpu_relax();
    return true;
  }

 private:
  std::uint64_t left_;
};

// What the writer stored before it raised the signal is visible when this returns true.
FERRY_DEVICE_FN bool test_signal(const std::uint64_t* signal, std::uint64_t expected) {
  return load_acquire(signal) >= expected;
}

// False when the backoff gave up first; the data then must not be used.
template <class Backoff>
FERRY_DEVICE_FN bool wait_signal(
    const std::uint64_t* signal, std::uint64_t expected, Backoff backoff) {
  bool arrived = test_signal(signal, expected);
  for (; !arrived && backoff();) arrived = test_signal(signal, expected);
  return arrived;
}

} // namespace ferry::device
