// SPDX-License-Identifier: MIT
#include "device/rma.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>
#include <vector>

#include "ferry/device.hpp"
#include "tests/support/device_team.hpp"
#include "tests/support/lanes.hpp"

using namespace ferry::device;
using ferry::core::Producers;
using ferry::test::DeviceTeam;
using ferry::test::Patience;
using ferry::test::run_lanes;
using ferry::test::run_ranks;
using ferry::test::TeamShape;

namespace {

void fill(char* at, std::uint64_t bytes, unsigned seed) {
  for (std::uint64_t i = 0; i < bytes; ++i) {
    at[i] = static_cast<char>(i * 29 + (i >> 8) + seed * 91u);
  }
}

bool filled(const char* at, std::uint64_t bytes, unsigned seed) {
  std::vector<char> expected(bytes);
  fill(expected.data(), bytes, seed);
  return bytes == 0 || std::memcmp(at, expected.data(), bytes) == 0;
}

std::uint64_t reserved(DeviceTeam& team) {
  return load_acquire(team.queue(0, 1).ring().reserved);
}

// A look that is long enough for a signal to overtake what is held back, if it would.
bool stays_silent(const TeamHandle& team, std::uint32_t from, std::uint64_t expected) {
  return !wait_signal(team, from, expected, [looks = 0]() mutable {
    std::this_thread::yield();
    return ++looks < 200;
  });
}

} // namespace

TEST_CASE("handles are plain data that begins with size and version") {
  static_assert(std::is_trivially_copyable_v<TeamHandle> && std::is_standard_layout_v<TeamHandle>);
  static_assert(std::is_trivially_copyable_v<PeerHandle> && std::is_standard_layout_v<PeerHandle>);
  static_assert(std::is_trivially_copyable_v<Wave> && std::is_trivially_copyable_v<Workgroup>);
  CHECK(offsetof(TeamHandle, size) == 0);
  CHECK(offsetof(TeamHandle, version) == 4);
}

namespace {

// Rank 0 puts to rank 1 and signals; each lane stores its part of the source.
template <class Scope>
void put_sizes(std::uint32_t lanes, Producers producers) {
  CAPTURE(lanes);
  TeamShape shape;
  shape.window_bytes = 8192;
  shape.producers = producers;
  DeviceTeam team(shape);
  std::atomic<int> wrong = 0;
  run_ranks<Scope>(team, lanes, [&](const TeamHandle& handle, const Scope& scope) {
    std::uint64_t count = 0;
    for (const std::uint64_t bytes : {0, 1, 7, 8, 63, 64, 65, 255, 256, 257, 1024, 1025, 4097}) {
      ++count;
      if (handle.rank == 0) {
        for (std::uint64_t i = scope.rank(); i < bytes; i += scope.size()) {
          team.source(0)[i] = static_cast<char>(i * 29 + (i >> 8) + count * 91u);
        }
        const PutResult r = put_signal(handle, 1, count, team.source(0), bytes, 1, scope);
        if (r.status != PutStatus::done) ++wrong;
        if (!flush(handle, 1, r, Patience{}, scope)) ++wrong;
      } else {
        if (!wait_signal(handle, 0, count, Patience{}, scope)) ++wrong;
        if (!filled(team.window(1) + count, bytes, static_cast<unsigned>(count))) ++wrong;
      }
      if (barrier(handle, Patience{}, scope) != PutStatus::done) ++wrong;
    }
  });
  CHECK(wrong == 0);
  CHECK(team.sound());
}

} // namespace

TEST_CASE("puts with signals of all sizes, by each scope") {
  put_sizes<Thread>(1, Producers::one);
  for (const std::uint32_t lanes : {1u, 4u, 64u}) {
    put_sizes<Wave>(lanes, Producers::one);
    put_sizes<Workgroup>(lanes, Producers::several);
  }
}

TEST_CASE("a call of 64 lanes makes one reservation and rings once") { // row 20
  DeviceTeam team({});
  team.hold(0, 1, true);
  std::atomic<std::uint64_t> tickets = 0;
  run_lanes<Wave>(64, [&](const Wave& scope) {
    const PutResult r = put_signal(team.handle(0), 1, 0, team.source(0), 2048, 1, scope);
    tickets += r.ticket;
  });
  CHECK(reserved(team) == 2 * 28 + 32); // two segments and the signal behind them
  CHECK(team.queue(0, 1).written() == 2 * 28 + 32);
  CHECK(tickets == 64 * (2 * 28 + 32)); // every lane has the leader's result
  team.hold(0, 1, false);
}

TEST_CASE("64 threads put through one queue for several producers") { // rows 17, 20
  TeamShape shape;
  shape.window_bytes = 64 * 300;
  shape.producers = Producers::several;
  shape.ring_bytes = 512;
  DeviceTeam team(shape);
  fill(team.source(0), 64 * 300, 1);
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 64; ++t) {
    threads.emplace_back([&team, t] {
      const char* const from = team.source(0) + t * 300;
      PutResult r = put_signal(team.handle(0), 1, t * 300, from, 300);
      for (Patience wait; r.status == PutStatus::would_block && wait();) {
        r = put_signal(team.handle(0), 1, t * 300, from, 300);
      }
    });
  }
  CHECK(wait_signal(team.handle(1), 0, 64, Patience{}));
  CHECK(filled(team.window(1), 64 * 300, 1));
}

// Rows 30 and 36: one rule, whichever way an operation goes.
TEST_CASE("a short put and a signal do not overtake a long put that is held back") {
  DeviceTeam team({});
  const TeamHandle mine = team.handle(0);
  fill(team.source(0), 1000, 3);
  team.hold(0, 1, true);
  REQUIRE(put_nbi(mine, 1, 0, team.source(0), 1000).status == PutStatus::done);
  REQUIRE(put_nbi(mine, 1, 2000, team.source(0), 8).status == PutStatus::done); // rides
  REQUIRE(put_value(mine, 1, 3000, 0x0123'4567'89ab'cdef).status == PutStatus::done);
  REQUIRE(signal(mine, 1).status == PutStatus::done);
  CHECK(stays_silent(team.handle(1), 0, 1));
  CHECK_FALSE(filled(team.window(1) + 2000, 8, 3));
  team.hold(0, 1, false);
  CHECK(wait_signal(team.handle(1), 0, 1, Patience{}));
  CHECK(filled(team.window(1), 1000, 3));
  CHECK(filled(team.window(1) + 2000, 8, 3));
  std::uint64_t value = 0;
  std::memcpy(&value, team.window(1) + 3000, 8);
  CHECK(value == 0x0123'4567'89ab'cdef);
  CHECK(team.sound());
}

TEST_CASE("consumed is not settled: short operations ride until a drain, then go by store") {
  DeviceTeam team({});
  const TeamHandle mine = team.handle(0);
  REQUIRE(put(mine, 1, 0, team.source(0), 1000, Patience{}) == PutStatus::done);
  const std::uint64_t used = reserved(team);
  REQUIRE(signal(mine, 1).status == PutStatus::done);
  CHECK(reserved(team) == used + 32);
  REQUIRE(quiet(mine, Patience{}));
  const std::uint64_t drained = reserved(team);
  REQUIRE(put_signal(mine, 1, 0, team.source(0), 255).status == PutStatus::done);
  CHECK(reserved(team) == drained);
  CHECK(test_signal(team.handle(1), 0, 2)); // it was there when the call returned
  REQUIRE(put_nbi(mine, 1, 0, team.source(0), 256).status == PutStatus::done); // the threshold
  CHECK(reserved(team) == drained + 28);
}

TEST_CASE("a fence is a packet where puts are under way, and none otherwise") {
  DeviceTeam team({});
  const TeamHandle mine = team.handle(0);
  CHECK(fence(mine, 1) == PutStatus::done);
  CHECK(reserved(team) == 0);
  team.hold(0, 1, true);
  REQUIRE(put_nbi(mine, 1, 0, team.source(0), 1000).status == PutStatus::done);
  CHECK(fence(mine, 1) == PutStatus::done);
  CHECK(reserved(team) == 28 + 32);
  team.hold(0, 1, false);
  REQUIRE(quiet(mine, Patience{}));
  CHECK(load_acquire(mine.landed) == 3); // one by store, one by the engine, one of quiet
}

// Case 84 of public reports: a drain that returns early.
TEST_CASE("quiet and flush wait for the caller's packets, and give up") {
  DeviceTeam team({});
  const TeamHandle mine = team.handle(0);
  fill(team.source(0), 1000, 4);
  team.hold(0, 1, true);
  const PutResult r = put_nbi(mine, 1, 0, team.source(0), 1000);
  CHECK_FALSE(flush(mine, 1, r, Attempts(1000)));
  CHECK_FALSE(quiet(mine, Attempts(1000)));
  CHECK(put(mine, 1, 0, team.source(0), 1000, Attempts(1000)) == PutStatus::timed_out);
  team.hold(0, 1, false);
  CHECK(quiet(mine, Patience{}));
  CHECK(filled(team.window(1), 1000, 4));
}

TEST_CASE("the source may be overwritten after a flush, by two producers on one queue") { // case 84
  TeamShape shape;
  shape.producers = Producers::several;
  DeviceTeam team(shape);
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{2048}}) {
    threads.emplace_back([&team, &wrong, at] {
      const TeamHandle mine = team.handle(0);
      for (unsigned i = 0; i < 5000; ++i) {
        fill(team.source(0) + at, 300, i);
        if (put(mine, 1, at, team.source(0) + at, 300, Patience{}) != PutStatus::done) ++wrong;
        if (!filled(team.window(1) + at, 300, i)) ++wrong; // this consumer also lands it
      }
    });
  }
  threads.clear();
  CHECK(wrong == 0);
}

TEST_CASE("a get brings the peer's bytes, behind earlier puts") {
  for (const std::uint64_t bytes : {0, 1, 8, 255, 256, 257, 3000}) {
    CAPTURE(bytes);
    DeviceTeam team({});
    std::vector<int> statuses(4, -1);
    fill(team.window(1), 4096, 5);
    run_lanes<Wave>(4, [&](const Wave& scope) {
      const PutStatus status = get(team.handle(0), 1, team.source(0), 17, bytes, Patience{}, scope);
      statuses[scope.rank()] = static_cast<int>(status);
    });
    CHECK(statuses == std::vector<int>(4, 0));
    std::vector<char> all(4096);
    fill(all.data(), 4096, 5);
    CHECK(
        std::equal(all.begin() + 17, all.begin() + 17 + static_cast<long>(bytes), team.source(0)));
  }
  DeviceTeam team({});
  team.hold(0, 1, true);
  REQUIRE(put_nbi(team.handle(0), 1, 0, team.source(0), 1000).status == PutStatus::done);
  CHECK(get(team.handle(0), 1, team.source(0), 0, 8, Attempts(1000)) == PutStatus::timed_out);
  team.hold(0, 1, false);
}

// Not even at a third rank, which has nothing to do with the put.
TEST_CASE("arrival at a barrier does not overtake payload") { // rows 33, 35
  TeamShape shape;
  shape.ranks = 3;
  DeviceTeam team(shape);
  team.hold(0, 1, true);
  fill(team.source(0), 1000, 6);
  REQUIRE(put_nbi(team.handle(0), 1, 0, team.source(0), 1000).status == PutStatus::done);
  std::atomic<int> passed = 0;
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> ranks;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      ranks.emplace_back([&, rank] {
        if (barrier(team.handle(rank), Patience{}) != PutStatus::done) ++wrong;
        ++passed;
        if (!filled(team.window(1), 1000, 6)) ++wrong;
      });
    }
    for (int i = 0; i < 500; ++i) std::this_thread::yield();
    CHECK(passed == 0);
    team.hold(0, 1, false);
  }
  CHECK(wrong == 0);
}

TEST_CASE("1000 barriers of 3 ranks of 4 lanes keep step") {
  TeamShape shape;
  shape.ranks = 3;
  DeviceTeam team(shape);
  std::array<std::atomic<int>, 3> steps{};
  std::atomic<int> wrong = 0;
  run_ranks<Wave>(team, 4, [&](const TeamHandle& handle, const Wave& scope) {
    for (int step = 1; step <= 1000; ++step) {
      if (scope.is_leader()) steps[handle.rank] = step;
      if (barrier(handle, Patience{}, scope) != PutStatus::done) return void(++wrong);
      for (const auto& other : steps) wrong += other < step || other > step + 1 ? 1 : 0;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("signals are waited for with >=, those of each sender by themselves") { // rows 32, 46
  TeamShape shape;
  shape.ranks = 3;
  DeviceTeam team(shape);
  const TeamHandle mine = team.handle(2);
  REQUIRE(signal(team.handle(0), 2, 5).status == PutStatus::done);
  CHECK(test_signal(mine, 0, 5));
  CHECK(test_signal(mine, 0, 3)); // passed by, not missed
  CHECK_FALSE(test_signal(mine, 0, 6));
  CHECK_FALSE(test_signal(mine, 1, 1));
  CHECK_FALSE(wait_signal(mine, 1, 1, Attempts(100)));
  CHECK(slot(mine, Channel::user, 2) != slot(mine, Channel::barrier, 0));
}

TEST_CASE("a rank above 64 is drained, and signals its own word") { // rows 47, 49
  TeamShape shape;
  shape.ranks = 70;
  shape.ring_bytes = 256;
  DeviceTeam team(shape);
  const TeamHandle mine = team.handle(0);
  team.hold(0, 69, true);
  REQUIRE(put_signal(mine, 69, 0, team.source(0), 1000).status == PutStatus::done);
  CHECK_FALSE(quiet(mine, Attempts(1000)));
  team.hold(0, 69, false);
  CHECK(quiet(mine, Patience{}));
  CHECK(test_signal(team.handle(69), 0, 1));
  REQUIRE(signal(team.handle(69), 0).status == PutStatus::done);
  CHECK(test_signal(mine, 69, 1));
  CHECK_FALSE(test_signal(mine, 69 - 64, 1));
  CHECK_FALSE(test_signal(mine, 69 % 8, 1));
}

TEST_CASE("which queue leads to a peer is data") { // row 75
  TeamShape shape;
  shape.ranks = 3;
  shape.producers = Producers::several;
  DeviceTeam team(shape);
  team.peers(0)[2].ring = team.peers(0)[1].ring; // both peers over one queue
  team.peers(0)[2].settled = team.peers(0)[1].settled;
  const TeamHandle mine = team.handle(0);
  fill(team.source(0), 1000, 7);
  team.hold(0, 1, true);
  REQUIRE(put_signal(mine, 2, 0, team.source(0), 1000).status == PutStatus::done);
  CHECK(stays_silent(team.handle(2), 0, 1));
  team.hold(0, 1, false);
  CHECK(wait_signal(team.handle(2), 0, 1, Patience{}));
  CHECK(filled(team.window(2), 1000, 7));
  CHECK(quiet(mine, Patience{}));
  CHECK(team.queue(0, 2).consumed() == 0);
}

TEST_CASE("a full ring is an answer to all lanes, and those that wait find room") {
  TeamShape shape;
  shape.ring_bytes = 128;
  shape.threshold = 0;
  DeviceTeam team(shape);
  const TeamHandle mine = team.handle(0);
  team.hold(0, 1, true);
  for (int i = 0; i < 3; ++i) REQUIRE(signal(mine, 1).status == PutStatus::done);
  // Row 20: with room for the copy and none for the signal, neither is posted.
  CHECK(put_signal(mine, 1, 0, team.source(0), 8).status == PutStatus::would_block);
  CHECK(reserved(team) == 96);
  REQUIRE(put_nbi(mine, 1, 0, team.source(0), 8).status == PutStatus::done); // 124 of 128 bytes
  std::atomic<int> refused = 0;
  run_lanes<Wave>(4, [&](const Wave& scope) {
    refused += put_nbi(mine, 1, 0, team.source(0), 8, scope).status == PutStatus::would_block;
    refused += put_value(mine, 1, 0, 8, scope).status == PutStatus::would_block;
  });
  CHECK(refused == 2 * 4);
  CHECK(put(mine, 1, 0, team.source(0), 8, Attempts(100)) == PutStatus::would_block);
  const std::jthread late([&] { team.hold(0, 1, false); });
  CHECK(put(mine, 1, 0, team.source(0), 8, Patience{}) == PutStatus::done);
}

TEST_CASE("what is wrong with a call is its status, and nothing is posted") {
  DeviceTeam team({});
  TeamHandle mine = team.handle(0);
  const char* const from = team.source(0);
  CHECK(put_nbi(mine, 2, 0, from, 8).status == PutStatus::bad_team);
  CHECK(put_nbi(mine, 1, 4089, from, 8).status == PutStatus::bad_address);
  CHECK(put_nbi(mine, 1, ~std::uint64_t{0}, from, 8).status == PutStatus::bad_address);
  CHECK(put_nbi(mine, 1, 0, nullptr, 8).status == PutStatus::bad_address);
  CHECK(put_nbi(mine, 1, 0, nullptr, 1000).status == PutStatus::bad_address);
  CHECK(put_value(mine, 1, 4, 1).status == PutStatus::bad_address);
  CHECK(get(mine, 1, nullptr, 0, 8, Attempts(0)) == PutStatus::bad_address);
  mine.size -= 8; // row 72: a caller of another version
  CHECK(put_nbi(mine, 1, 0, from, 8).status == PutStatus::bad_team);
  CHECK(fence(mine, 1) == PutStatus::bad_team);
  CHECK_FALSE(quiet(mine, Attempts(0)));
  CHECK_FALSE(test_signal(mine, 1, 0));
  CHECK(reserved(team) == 0);
  CHECK(team.sound());
}
