// SPDX-License-Identifier: MIT
#include "apps/ferry-tune/crossover.hpp"

#include <algorithm>
#include <cmath>

namespace ferry::tune {
namespace {

constexpr double kValueFactor = 4;
constexpr double kTimeFactor = 1.5;

} // namespace

std::size_t best_crossover(std::span<const double> first, std::span<const double> second) {
  // Starting with the second way everywhere; each size that goes over to the first changes the cost
  // by the logarithm of a ratio, so that small sizes count as much as large ones.
  double cost = 0;
  double least = 0;
  std::size_t best = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    cost += std::log(first[i] / second[i]);
    if (cost < least) {
      least = cost;
      best = i + 1;
    }
  }
  return best;
}

std::size_t best_choice(std::span<const double> times) {
  return static_cast<std::size_t>(std::min_element(times.begin(), times.end()) - times.begin());
}

double geometric_mean(std::span<const double> times) {
  double sum = 0;
  for (const double time : times) sum += std::log(time);
  return std::exp(sum / static_cast<double>(times.size()));
}

double time_with(std::span<const double> first, std::span<const double> second, std::size_t at) {
  std::vector<double> chosen(first.begin(), first.end());
  std::copy(
      second.begin() + static_cast<std::ptrdiff_t>(at), second.end(),
      chosen.begin() + static_cast<std::ptrdiff_t>(at));
  return geometric_mean(chosen);
}

std::optional<Finding> agree(std::span<const Trial> trials) {
  if (trials.empty()) return std::nullopt;
  std::vector<std::uint64_t> values;
  std::vector<double> times;
  for (const Trial& trial : trials) {
    values.push_back(trial.value);
    times.push_back(trial.time);
  }
  std::sort(values.begin(), values.end());
  std::sort(times.begin(), times.end());
  if (times.back() > kTimeFactor * times.front()) return std::nullopt;
  const auto smallest = static_cast<double>(values.front());
  const auto largest = static_cast<double>(values.back());
  if (largest > kValueFactor * smallest) return std::nullopt;
  const std::uint64_t median = values[values.size() / 2];
  if (median == 0) return Finding{0, 0};
  const double spread = 100 * (largest - smallest) / static_cast<double>(median);
  return Finding{median, static_cast<std::uint64_t>(std::lround(spread))};
}

} // namespace ferry::tune
