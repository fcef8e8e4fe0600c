// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "device/wide_copy.hpp"
#include "device/wide_exchange.hpp"
#include "tests/support/device_team.hpp"
#include "tests/support/kernel_job.hpp"
#include "tests/support/lanes.hpp"

namespace {

using namespace ferry;
using namespace ferry::device;
using ferry::test::KernelJob;
using ferry::test::Patience;

template <class Scope>
void start(KernelJob& job, std::uint32_t rank, std::uint32_t lanes) {
  const WideArgs args = job.wide(rank);
  const auto blocks = static_cast<std::uint32_t>(wide_blocks(args));
  test::launch<Scope>(blocks, lanes, [&](const Place& place, const Scope& scope) {
    run_wide(args, Patience{}, place, scope);
  });
}

template <class Scope>
int wrong_starts(KernelJob& job, std::uint64_t starts, std::uint32_t lanes) {
  std::atomic<int> wrong = 0;
  test::each_rank(job, [&](std::uint32_t rank) {
    for (std::uint64_t epoch = 1; epoch <= starts; ++epoch) {
      job.fill(rank, epoch);
      start<Scope>(job, rank, lanes);
      wrong += !job.right(rank, epoch) || job.report(rank).status != 0;
    }
  });
  return wrong;
}

test::PairBytes same(std::uint64_t bytes) {
  return [bytes](std::uint32_t, std::uint32_t) { return bytes; };
}

bool copied_alone(std::uint64_t bytes, std::uint64_t to, std::uint64_t from, std::uint32_t lanes) {
  std::vector<char> source(bytes + 64);
  std::vector<char> target(bytes + 64, 0x5c);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 7 + i / 251);
  std::vector<char> expected = target;
  std::copy_n(
      source.begin() + static_cast<long>(from), bytes,
      expected.begin() + 32 + static_cast<long>(to));
  test::run_lanes<Workgroup>(lanes, [&](const Workgroup& scope) {
    copy_wide(target.data() + 32 + to, source.data() + from, bytes, scope);
  });
  return target == expected;
}

} // namespace

TEST_CASE("wide copies: every byte, and none beside them, at any two addresses") {
  for (const std::uint64_t bytes : {0, 1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000, 4097}) {
    for (const std::uint64_t to : {0, 1, 4, 9, 16}) {
      for (const std::uint64_t from : {0, 1, 8, 15}) {
        CAPTURE(bytes);
        CAPTURE(to);
        CAPTURE(from);
        CHECK(copied_alone(bytes, to, from, 1));
      }
    }
    for (const std::uint32_t lanes : {2, 3, 5}) CHECK(copied_alone(bytes, 3, 3, lanes));
  }
}

TEST_CASE("wide copies: slices cover exactly what there is") {
  for (const std::uint64_t bytes : {0, 1, 16, 17, 100, 4096, 4097, 100003}) {
    for (const std::uint64_t parts : {1, 2, 3, 8, 64}) {
      std::uint64_t end = 0;
      for (std::uint64_t part = 0; part < parts; ++part) {
        const detail::Slice slice = detail::slice_of(bytes, part, parts);
        CHECK(slice.begin == end);
        CHECK((slice.begin % 16 == 0 || slice.begin == bytes));
        end = slice.begin + slice.bytes;
      }
      CHECK(end == bytes);
    }
  }
}

TEST_CASE("wide exchange: sizes, parts, lanes and addresses") {
  for (const std::uint64_t bytes : {1, 16, 100, 4096, 5001}) {
    for (const std::uint64_t parts : {1, 3}) {
      CAPTURE(bytes);
      CAPTURE(parts);
      KernelJob job({3, same(bytes), parts, bytes % 16, 4});
      CHECK(wrong_starts<Workgroup>(job, 4, 2) == 0);
      CHECK(job.epochs(1) == 4);
    }
  }
}

TEST_CASE("wide exchange: starts follow each other without a barrier (rows 40, 41, 42, 45)") {
  KernelJob alltoall({3, same(48), 2, 0, 0});
  CHECK(wrong_starts<Thread>(alltoall, 200, 1) == 0);
  const auto from_one = [](std::uint32_t from, std::uint32_t to) {
    return std::uint64_t{from == 1 && to != 1 ? 48u : 0u};
  };
  KernelJob broadcast({4, from_one, 2, 0, 0});
  CHECK(wrong_starts<Thread>(broadcast, 200, 1) == 0);
  const auto uneven = [](std::uint32_t from, std::uint32_t to) {
    return std::uint64_t{(from * 5 + to * 3) % 4} * 33;
  };
  KernelJob some({4, uneven, 1, 1, 1});
  CHECK(wrong_starts<Thread>(some, 200, 1) == 0);
}

TEST_CASE("wide exchange: one rank alone, and nothing to move") {
  KernelJob alone({1, same(1000), 3, 0, 0});
  CHECK(wrong_starts<Workgroup>(alone, 3, 2) == 0);
  KernelJob empty({3, same(0), 2, 0, 0});
  CHECK(wrong_starts<Thread>(empty, 3, 1) == 0);
}

TEST_CASE("wide exchange: nothing is written before the receiver has entered (row 34)") {
  KernelJob job({2, same(64), 1, 0, 0});
  job.fill(0, 1);
  job.fill(1, 1);
  run_wide(job.wide(0), Attempts(100), Place{}, Thread{});
  CHECK(job.report(0).status == static_cast<std::uint64_t>(PutStatus::timed_out));
  CHECK(job.report(0).peer == 0);
  CHECK(job.report(0).epoch == 1);
  run_wide(job.wide(1), Attempts(100), Place{}, Thread{}); // finds that rank 0 had entered
  CHECK(job.report(1).status == static_cast<std::uint64_t>(PutStatus::timed_out));
}

TEST_CASE("wide exchange: a grid of another size is refused") {
  KernelJob job({2, same(64), 2, 0, 0});
  run_wide(job.wide(0), Attempts(0), Place{0, 1}, Thread{});
  CHECK(job.report(0).status == static_cast<std::uint64_t>(PutStatus::bad_team));
  WideArgs args = job.wide(1);
  args.size = 3;
  run_wide(args, Attempts(0), Place{0, 2}, Thread{});
  CHECK(job.epochs(1) == 0);
}
