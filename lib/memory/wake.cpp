// SPDX-License-Identifier: MIT
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <climits>
#include <ctime>

#include "lib/memory/heap.hpp"

namespace ferry::core {
namespace {

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, timespec* limit) {
  return syscall(
      SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit, nullptr, 0);
}

} // namespace

// Pairs with wake(): either this thread sees the news in `ready`, or the waker sees a sleeper. The
// time limit bounds what a waker without fence can cost.
void sleep_on(HeapHeader& header, double seconds, bool (*ready)(void*), void* context) {
  const std::uint32_t seen = header.wakes.load(std::memory_order_acquire);
  header.sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (!ready(context)) {
    timespec limit{};
    limit.tv_sec = static_cast<time_t>(seconds);
    limit.tv_nsec = static_cast<long>((seconds - static_cast<double>(limit.tv_sec)) * 1e9);
    futex(header.wakes, FUTEX_WAIT, seen, &limit);
  }
  header.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void wake(HeapHeader& header, bool fence) {
  if (fence) std::atomic_thread_fence(std::memory_order_seq_cst);
  if (header.sleepers.load(std::memory_order_relaxed) == 0) return;
  header.wakes.fetch_add(1, std::memory_order_release);
  futex(header.wakes, FUTEX_WAKE, INT_MAX, nullptr);
}

} // namespace ferry::core
