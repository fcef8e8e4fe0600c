// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "pattern.hpp"

namespace ferry::test {

// The same numbers for the same seed on every machine, which the distributions of <random> are not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(mix(seed + 1)) {}
  std::uint64_t word() { return mix(state_ += 0x9e3779b97f4a7c15ULL); }
  // One of low .. high.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(word() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }
  template <class Array>
  auto& pick(Array& from) {
    return from[word() % std::size(from)];
  }

 private:
  std::uint64_t state_;
};

// TEST_SEED repeats the run that printed it.
inline std::uint64_t first_seed(std::uint64_t otherwise) {
  const char* value = std::getenv("TEST_SEED");
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

} // namespace ferry::test
