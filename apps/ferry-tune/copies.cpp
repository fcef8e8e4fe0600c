// SPDX-License-Identifier: MIT
#include "apps/ferry-tune/copies.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>

#include "device/copy.hpp"

namespace ferry::tune {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kBytesPerRound = std::size_t{2} << 20;

device::CopyLimits limits_of(CopyWay way) {
  switch (way) {
    case CopyWay::plain:
      return {kNever, kNever};
    case CopyWay::rep:
      return {0, kNever};
    case CopyWay::stream:
      break;
  }
  return {kNever, 0};
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One load of each cache line; the sum keeps the compiler from leaving them out.
unsigned read_all(const std::vector<unsigned char>& bytes) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 64) sum += bytes[i];
  return sum;
}

struct Job {
  std::vector<std::vector<unsigned char>> from;
  std::vector<std::vector<unsigned char>> to;
  std::size_t bytes = 0;
  bool read_after = false;
  int rounds = 1;
};

// The best round of thread `me`: copies, and reads what thread `other` wrote.
double run_thread(Job& job, std::barrier<>& all, std::size_t me, std::atomic<unsigned>& sink) {
  const std::size_t other = (me + 1) % job.to.size();
  const std::size_t calls =
      job.read_after
          ? 1
          : std::max<std::size_t>(kBytesPerRound / std::max<std::size_t>(job.bytes, 1), 1);
  double best = std::numeric_limits<double>::max();
  for (int round = 0; round < job.rounds + 1; ++round) { // the first one warms up
    all.arrive_and_wait();
    const double start = seconds_now();
    for (std::size_t i = 0; i < calls; ++i) {
      device::copy_bytes(job.to[me].data(), job.from[me].data(), job.bytes);
    }
    if (job.read_after) {
      all.arrive_and_wait();
      sink.fetch_add(read_all(job.to[other]), std::memory_order_relaxed);
    }
    const double seconds = (seconds_now() - start) / static_cast<double>(calls);
    if (round > 0) best = std::min(best, seconds);
  }
  return best;
}

double time_one(std::size_t bytes, bool read_after, int rounds) {
  const std::size_t threads = std::thread::hardware_concurrency() > 1 ? 2 : 1;
  Job job;
  job.from.assign(threads, std::vector<unsigned char>(bytes, 1));
  job.to.assign(threads, std::vector<unsigned char>(bytes, 2));
  job.bytes = bytes;
  job.read_after = read_after;
  job.rounds = rounds;
  std::barrier<> all(static_cast<std::ptrdiff_t>(threads));
  std::atomic<unsigned> sink{0};
  std::vector<double> best(threads);
  {
    std::vector<std::jthread> crew;
    for (std::size_t i = 0; i < threads; ++i) {
      crew.emplace_back([&, i] { best[i] = run_thread(job, all, i, sink); });
    }
  }
  return *std::max_element(best.begin(), best.end());
}

} // namespace

std::vector<double> time_copies(
    CopyWay way, std::span<const std::size_t> sizes, bool read_after, int rounds) {
  device::set_copy_limits(limits_of(way));
  std::vector<double> times;
  for (const std::size_t bytes : sizes) times.push_back(time_one(bytes, read_after, rounds));
  device::set_copy_limits({});
  return times;
}

} // namespace ferry::tune
