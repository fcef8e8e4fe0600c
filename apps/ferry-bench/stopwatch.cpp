// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/stopwatch.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ferry::bench {
namespace {

constexpr int kFewestRounds = 3;
constexpr int kCalibrationSteps = 8;

// Long enough that the clock and the start of a round do not count; from 2 MiB on, where caches and
// page tables matter, long enough that none inherits the caches of another.
constexpr std::uint64_t kLargeBytes = std::uint64_t{2} << 20;
constexpr double kSmallRoundSeconds = 1e-3;
constexpr double kLargeRoundSeconds = 50e-3;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace

Times summarize(std::vector<double> rounds) {
  std::sort(rounds.begin(), rounds.end());
  const std::size_t middle = rounds.size() / 2;
  const bool odd = rounds.size() % 2 == 1;
  return {rounds.front(), odd ? rounds[middle] : (rounds[middle - 1] + rounds[middle]) / 2};
}

double Stopwatch::time_round(const Contender& contender, std::int64_t calls) const {
  crew_.barrier();
  const double start = seconds_now();
  for (std::int64_t i = 0; i < calls; ++i) contender.call();
  const double seconds = seconds_now() - start;
  crew_.barrier();
  return seconds;
}

Stopwatch::Pace Stopwatch::calibrate(const Contender& contender) const {
  const double target = block_bytes_ >= kLargeBytes ? kLargeRoundSeconds : kSmallRoundSeconds;
  contender.call();
  Pace pace;
  for (int step = 0; step < kCalibrationSteps; ++step) {
    pace.seconds = time_round(contender, pace.calls);
    crew_.maximum({&pace.seconds, 1});
    if (pace.seconds >= target) break;
    const double growth = std::clamp(1.2 * target / std::max(pace.seconds, 1e-9), 2.0, 100.0);
    const auto calls = static_cast<std::int64_t>(static_cast<double>(pace.calls) * growth);
    pace.seconds *= static_cast<double>(calls) / static_cast<double>(pace.calls);
    pace.calls = calls;
  }
  return pace;
}

int Stopwatch::choose_rounds(double seconds) const {
  if (options_.rounds) return *options_.rounds;
  const double affordable = options_.seconds / seconds;
  if (affordable >= kDefaultRounds) return kDefaultRounds;
  return std::max(kFewestRounds, static_cast<int>(affordable));
}

std::vector<Times> Stopwatch::run(std::span<const Contender* const> contenders) {
  std::vector<Pace> paces;
  double seconds = 0;
  for (const Contender* contender : contenders) {
    paces.push_back(calibrate(*contender));
    seconds += paces.back().seconds;
  }
  rounds_ = choose_rounds(seconds);
  std::vector<std::vector<double>> rounds(contenders.size());
  // Each goes first as often as the others.
  for (int round = 0; round < rounds_; ++round) {
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      const std::size_t i = (static_cast<std::size_t>(round) + turn) % contenders.size();
      rounds[i].push_back(time_round(*contenders[i], paces[i].calls));
    }
  }
  std::vector<Times> times;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    crew_.maximum(rounds[i]);
    for (double& round : rounds[i]) round /= static_cast<double>(paces[i].calls);
    times.push_back(summarize(std::move(rounds[i])));
  }
  return times;
}

} // namespace ferry::bench
