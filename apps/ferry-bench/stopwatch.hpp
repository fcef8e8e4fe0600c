// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/ferry-bench/contender.hpp"
#include "apps/ferry-bench/crew.hpp"
#include "apps/ferry-bench/options.hpp"

namespace ferry::bench {

// Seconds of one call on the slowest rank, over the rounds of one size.
struct Times {
  double minimum = 0;
  double median = 0;
};

// Of rounds that are not empty.
[[nodiscard]] Times summarize(std::vector<double> rounds);

// Times contenders in turns, so that what disturbs the machine disturbs all. Collective.
class Stopwatch {
 public:
  Stopwatch(const Options& options, const Crew& crew, std::uint64_t block_bytes)
      : options_(options), crew_(crew), block_bytes_(block_bytes) {}

  // One for each contender. Throws when a call fails.
  [[nodiscard]] std::vector<Times> run(std::span<const Contender* const> contenders);
  // What run() took.
  [[nodiscard]] int rounds() const noexcept { return rounds_; }

 private:
  // A round of a contender: so many calls, and what they take.
  struct Pace {
    std::int64_t calls = 1;
    double seconds = 0;
  };

  [[nodiscard]] double time_round(const Contender& contender, std::int64_t calls) const;
  [[nodiscard]] Pace calibrate(const Contender& contender) const;
  [[nodiscard]] int choose_rounds(double seconds) const;

  const Options& options_;
  const Crew& crew_;
  std::uint64_t block_bytes_;
  int rounds_ = 0;
};

} // namespace ferry::bench
