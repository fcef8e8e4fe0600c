// SPDX-License-Identifier: MIT
#pragma once

// Starts of a persistent collective that a kernel makes: they were armed ahead by the host, and one
// store lets one go. Nobody on the host is in the path.

#include <cstdint>

#include "platform.hpp"
#include "signal.hpp"

namespace ferry::device {

inline constexpr std::uint32_t kStartVersion = 1;

// Passed by value to a kernel; what it points to belongs to the plan. Both words only grow.
struct StartHandle {
  std::uint32_t size = sizeof(StartHandle);
  std::uint32_t version = kStartVersion;
  std::uint64_t* release = nullptr; // starts of the plan up to this one may run
  const std::uint64_t* done = nullptr; // starts of the plan that are complete on this rank
  std::uint64_t first = 0; // number of the first start that was armed with this handle
  std::uint64_t starts = 0; // how many were
};

FERRY_DEVICE_FN bool usable(const StartHandle& handle) {
  return handle.size == sizeof(StartHandle) && handle.version == kStartVersion &&
         handle.release != nullptr && handle.done != nullptr;
}

// Lets the n-th start of the handle run, counted from 1, and all before it. By one thread at a
// time, in ascending order; what this thread stored before, the collective sends. False, and
// nothing starts: there is no such start.
FERRY_DEVICE_FN bool start(const StartHandle& handle, std::uint64_t n) {
  if (!usable(handle) || n == 0 || n > handle.starts) return false;
  store_release(handle.release, handle.first + n - 1); // pairs with the engine's wait
  return true;
}

// True once it is complete here: the result may be read, the buffers written.
FERRY_DEVICE_FN bool test_start(const StartHandle& handle, std::uint64_t n) {
  return usable(handle) && n != 0 && n <= handle.starts &&
         test_signal(handle.done, handle.first + n - 1);
}

// False when the backoff gave up first, or there is no such start.
template <class Backoff>
FERRY_DEVICE_FN bool wait_start(const StartHandle& handle, std::uint64_t n, Backoff backoff) {
  if (!usable(handle) || n == 0 || n > handle.starts) return false;
  return wait_signal(handle.done, handle.first + n - 1, backoff);
}

} // namespace ferry::device
