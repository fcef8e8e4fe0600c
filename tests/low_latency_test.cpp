// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <atomic>
#include <cstdint>
#include <string>

#include "device/low_latency.hpp"
#include "tests/support/device_team.hpp"
#include "tests/support/kernel_job.hpp"

namespace {

using namespace ferry;
using namespace ferry::device;
using ferry::test::KernelJob;
using ferry::test::Patience;

struct Launch {
  std::uint32_t blocks = 1;
  std::uint32_t lanes = 1;
};

template <class Scope>
void start(KernelJob& job, std::uint32_t rank, const Launch& how) {
  const LowLatencyArgs args = job.low_latency(rank);
  test::launch<Scope>(how.blocks, how.lanes, [&](const Place& place, const Scope& scope) {
    run_low_latency(args, Patience{}, place, scope);
  });
}

// Starts without a barrier between them; returns how many were wrong.
template <class Scope>
int wrong_starts(KernelJob& job, std::uint64_t starts, const Launch& how) {
  std::atomic<int> wrong = 0;
  test::each_rank(job, [&](std::uint32_t rank) {
    for (std::uint64_t epoch = 1; epoch <= starts; ++epoch) {
      job.fill(rank, epoch);
      start<Scope>(job, rank, how);
      wrong += !job.right(rank, epoch) || job.report(rank).status != 0;
    }
  });
  return wrong;
}

test::PairBytes same(std::uint64_t bytes) {
  return [bytes](std::uint32_t, std::uint32_t) { return bytes; };
}

test::PairBytes from_root(std::uint32_t root, std::uint64_t bytes) {
  return
      [=](std::uint32_t from, std::uint32_t to) { return from == root && to != root ? bytes : 0; };
}

std::uint64_t mixed(std::uint32_t from, std::uint32_t to) {
  static constexpr std::uint64_t kSizes[] = {0, 5, 0, 64, 1, 333, 4};
  return kSizes[(from * 3 + to) % 7];
}

} // namespace

TEST_CASE("low latency: every size and every address") {
  for (const std::uint64_t bytes : {1, 3, 4, 5, 7, 8, 63, 64, 65, 255, 1000}) {
    for (std::uint64_t shift = 0; shift < 5; ++shift) {
      CAPTURE(bytes);
      CAPTURE(shift);
      KernelJob job({3, same(bytes), 1, shift, 4 - shift});
      CHECK(wrong_starts<Thread>(job, 3, {1, 1}) == 0);
    }
  }
}

TEST_CASE("low latency: workgroups and lanes share the work out") {
  for (const Launch how : {Launch{1, 3}, Launch{2, 2}, Launch{3, 4}, Launch{5, 2}}) {
    CAPTURE(how.blocks);
    CAPTURE(how.lanes);
    KernelJob job({4, same(77), 1, 1, 2});
    CHECK(wrong_starts<Workgroup>(job, 20, how) == 0);
    CHECK(job.epochs(0) == 20);
    KernelJob waves({2, same(77), 1, 2, 1});
    CHECK(wrong_starts<Wave>(waves, 5, how) == 0);
  }
}

TEST_CASE("low latency: starts follow each other without a barrier (rows 40, 41, 42)") {
  KernelJob alltoall({4, same(40), 1, 0, 0});
  CHECK(wrong_starts<Thread>(alltoall, 500, {1, 1}) == 0);
  KernelJob broadcast({4, from_root(2, 40), 1, 0, 0});
  CHECK(wrong_starts<Thread>(broadcast, 500, {1, 1}) == 0);
  KernelJob uneven({5, mixed, 1, 0, 3});
  CHECK(wrong_starts<Thread>(uneven, 500, {2, 1}) == 0);
}

TEST_CASE("low latency: nothing to move, and nobody to move it to") {
  KernelJob empty({3, same(0), 1, 0, 0});
  CHECK(wrong_starts<Thread>(empty, 3, {1, 1}) == 0);
  KernelJob alone({1, same(100), 1, 3, 1});
  CHECK(wrong_starts<Workgroup>(alone, 3, {1, 4}) == 0);
}

TEST_CASE("low latency: a peer that does not come is named") {
  KernelJob job({3, same(8), 1, 0, 0});
  job.fill(0, 1);
  run_low_latency(job.low_latency(0), Attempts(100), Place{}, Thread{});
  CHECK(job.report(0).status == static_cast<std::uint64_t>(PutStatus::timed_out));
  CHECK(job.report(0).epoch == 1);
  CHECK(job.report(0).peer <= 1);
}

TEST_CASE("low latency: a root is one start ahead of its slowest receiver, not two") {
  KernelJob job({2, from_root(0, 8), 1, 0, 0});
  const auto start_root = [&] {
    run_low_latency(job.low_latency(0), Attempts(100), Place{}, Thread{});
    return job.report(0).status;
  };
  CHECK(start_root() == 0); // the receiver has not entered its first start
  CHECK(start_root() == static_cast<std::uint64_t>(PutStatus::timed_out));
  CHECK(job.report(0).epoch == 2);
}

TEST_CASE("low latency: arguments that cannot be are refused") {
  KernelJob job({2, same(8), 1, 0, 0});
  LowLatencyArgs args = job.low_latency(0);
  args.version = 7;
  run_low_latency(args, Attempts(0), Place{}, Thread{});
  CHECK(job.epochs(0) == 0);
  args = job.low_latency(0);
  args.half_words = 1; // 8 bytes need two
  run_low_latency(args, Attempts(0), Place{}, Thread{});
  CHECK(job.report(0).status == static_cast<std::uint64_t>(PutStatus::too_long));
}
