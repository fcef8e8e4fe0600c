// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ferry::tune {

// What repeated measurements say of an entry.
struct Finding {
  std::uint64_t value = 0;
  std::uint64_t spread = 0; // of the repetitions, in percent of the value
  bool operator==(const Finding&) const = default;
};

// Where to change from one way to another so that the least time is lost over all sizes: the index
// of the first size that takes the second way, sizes.size() for none. Both have a time for each
// size, all above 0.
[[nodiscard]] std::size_t best_crossover(
    std::span<const double> first, std::span<const double> second);

// The index of the least time.
[[nodiscard]] std::size_t best_choice(std::span<const double> times);

// What one repetition says: the value, and how long its way takes, as the geometric mean over
// sizes.
struct Trial {
  std::uint64_t value = 0;
  double time = 0;
};

// The time of a crossover at index `at`.
[[nodiscard]] double time_with(
    std::span<const double> first, std::span<const double> second, std::size_t at);
[[nodiscard]] double geometric_mean(std::span<const double> times);

// Out of several repetitions the median value and the spread. Empty when it was noise that was
// measured: the largest value is more than 4 times the smallest (zeros agree with zeros only), or
// the longest time more than 1.5 times the shortest.
[[nodiscard]] std::optional<Finding> agree(std::span<const Trial> trials);

} // namespace ferry::tune
