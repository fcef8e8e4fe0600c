// SPDX-License-Identifier: MIT
#include "costs.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

namespace ferry::plan {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// The best of five batches of about a millisecond.
double copy_time(std::vector<char>& to, const std::vector<char>& from, std::size_t bytes) {
  const auto copies = std::max<std::size_t>(10'000'000 / (bytes + 1000), 1);
  double best = INFINITY;
  for (int batch = 0; batch < 5; ++batch) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < copies; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      std::atomic_signal_fence(std::memory_order_seq_cst); // each copy is made
    }
    best = std::min(best, since(start) / static_cast<double>(copies));
  }
  return best;
}

struct alignas(128) Flag {
  std::atomic<int> value{0};
};

void await(const Flag& flag, int value) {
  constexpr int kEagerLooks = 1000; // without pauses, which are long on some virtual machines
  for (int looks = 0; flag.value.load(std::memory_order_acquire) < value; ++looks) {
    if (looks > kEagerLooks) std::this_thread::yield(); // the other thread may need this core
  }
}

// Half of a round between two threads: the best of batches, in which nobody else had a core.
double flight_time() {
  constexpr int kRounds = 100;
  constexpr double kPatience = 5e7; // ns
  double best = INFINITY;
  for (const auto begin = Clock::now(); best == INFINITY || since(begin) < kPatience;) {
    Flag there;
    Flag back;
    std::thread other([&] {
      for (int i = 1; i <= kRounds; ++i) {
        await(there, i);
        back.value.store(i, std::memory_order_release);
      }
    });
    const auto start = Clock::now();
    for (int i = 1; i <= kRounds; ++i) {
      there.value.store(i, std::memory_order_release);
      await(back, i);
    }
    best = std::min(best, since(start) / (2 * kRounds));
    other.join();
  }
  return best;
}

} // namespace

core::StepCosts measure_costs(std::uint64_t block_bytes) {
  constexpr std::uint64_t kLargest = 64 << 20;
  constexpr std::size_t kSmall = 8;
  const auto bytes =
      static_cast<std::size_t>(std::clamp<std::uint64_t>(block_bytes, 4096, kLargest));
  std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  core::StepCosts costs;
  costs.copy = copy_time(to, from, kSmall);
  costs.byte = std::max(copy_time(to, from, bytes) - costs.copy, 0.0) / static_cast<double>(bytes);
  costs.flight = flight_time();
  // A flag that is near is stored and looked at like eight bytes.
  costs.signal = costs.copy;
  costs.await = costs.copy;
  return costs;
}

core::StepCosts parse_costs(const std::string& text) {
  std::istringstream input(text);
  std::array<double, 5> values;
  std::string part;
  for (double& value : values) {
    char* end = nullptr;
    if (std::getline(input, part, ',')) value = std::strtod(part.c_str(), &end);
    const bool number = end != nullptr && end != part.c_str() && *end == '\0';
    if (!number || !std::isfinite(value) || value < 0) {
      throw std::invalid_argument(
          "--costs takes five numbers of nanoseconds: copy,byte,signal,flight,await");
    }
  }
  if (std::getline(input, part, ','))
    throw std::invalid_argument("--costs takes five numbers only");
  return {values[0], values[1], values[2], values[3], values[4]};
}

} // namespace ferry::plan
