// SPDX-License-Identifier: MIT
#include "device/scope.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "device/team.hpp"
#include "tests/support/lanes.hpp"

using namespace ferry::device;
using ferry::test::run_lanes;

TEST_CASE("without lanes a wave and a workgroup are one thread") {
  CHECK(Wave{}.size() == 1);
  CHECK(Workgroup{}.is_leader());
  CHECK(Wave{}.max(7) == 7);
  Workgroup{}.sync();
}

TEST_CASE("lanes have ranks, one leader, and agree on the largest value") {
  for (const std::uint32_t size : {1u, 4u, 64u}) {
    std::vector<std::atomic<int>> seen(size);
    std::atomic<std::uint32_t> leaders = 0;
    std::atomic<int> wrong = 0;
    run_lanes<Workgroup>(size, [&](const Workgroup& scope) {
      ++seen[scope.rank()];
      leaders += scope.is_leader() ? 1 : 0;
      for (std::uint64_t round = 0; round < 100; ++round) {
        const std::uint64_t high = round << 32; // all 64 bits count
        const std::uint64_t mine = high + (scope.rank() + round) % size;
        if (scope.max(mine) != high + size - 1 || scope.size() != size) ++wrong;
      }
    });
    CHECK(leaders == 1);
    CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& n) { return n == 1; }));
    CHECK(wrong == 0);
  }
}

TEST_CASE("sync shows each lane what the others stored, and none is ahead") {
  std::array<int, 64> stored{};
  std::atomic<int> wrong = 0;
  run_lanes<Wave>(64, [&](const Wave& scope) {
    for (int round = 1; round <= 100; ++round) {
      stored[scope.rank()] = round;
      scope.sync();
      for (const int other : stored) wrong += other != round ? 1 : 0;
      scope.sync();
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("lanes copy their parts, which cover exactly what there is") { // row 11
  for (const std::uint32_t size : {1u, 3u, 4u, 64u}) {
    for (const std::uint64_t bytes : {0u, 1u, 7u, 8u, 63u, 64u, 65u, 1000u}) {
      std::vector<char> from(bytes), to(bytes + 1, 'x');
      for (std::uint64_t i = 0; i < bytes; ++i) from[i] = static_cast<char>(i * 29 + size);
      run_lanes<Wave>(size, [&](const Wave& scope) {
        detail::copy_by_lanes(to.data(), from.data(), bytes, scope);
      });
      CHECK(std::equal(from.begin(), from.end(), to.begin()));
      CHECK(to[bytes] == 'x');
    }
  }
}
