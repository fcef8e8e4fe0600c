// SPDX-License-Identifier: MIT
#include "device/collective.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "ferry/device.hpp"
#include "tests/support/device_team.hpp"
#include "tests/support/lanes.hpp"

using namespace ferry::device;
using ferry::core::Producers;
using ferry::test::DeviceTeam;
using ferry::test::Patience;
using ferry::test::run_ranks;
using ferry::test::TeamShape;

namespace {

constexpr std::uint64_t kAt = 8; // where receive buffers lie in the windows

enum class Kind { alltoall, allgather, broadcast };

struct Step {
  Kind kind;
  std::uint64_t bytes;
  std::uint32_t epoch;
  std::uint32_t root;
};

// Byte i of what `from` sends to `to`. An allgather and a broadcast send the same to all.
char byte_of(const Step& s, std::uint32_t from, std::uint32_t to, std::uint64_t i) {
  const std::uint64_t receiver = s.kind == Kind::alltoall ? to : 0;
  return static_cast<char>(i * 13 + (i >> 8) * 5 + from * 31 + receiver * 57 + s.epoch * 101);
}

// Lane by lane, so that what each stored must reach the engine through the leader's doorbell.
template <class Scope>
void fill(DeviceTeam& team, std::uint32_t rank, const Step& s, const Scope& scope) {
  const bool roots = s.kind == Kind::broadcast;
  const std::uint64_t blocks = s.kind == Kind::alltoall ? team.ranks() : 1;
  for (std::uint64_t i = scope.rank(); i < team.ranks() * s.bytes; i += scope.size()) {
    team.window(rank)[kAt + i] = static_cast<char>(s.epoch + 77);
  }
  if (roots && rank != s.root) return;
  char* const to = roots ? team.window(rank) + kAt : team.source(rank);
  for (std::uint64_t i = scope.rank(); i < blocks * s.bytes; i += scope.size()) {
    to[i] = byte_of(s, rank, static_cast<std::uint32_t>(i / s.bytes), i % s.bytes);
  }
}

// Each lane looks at its part.
template <class Scope>
int count_wrong(DeviceTeam& team, std::uint32_t rank, const Step& s, const Scope& scope) {
  const std::uint64_t blocks = s.kind == Kind::broadcast ? 1 : team.ranks();
  int wrong = 0;
  for (std::uint64_t i = scope.rank(); i < blocks * s.bytes; i += scope.size()) {
    const auto block = static_cast<std::uint32_t>(i / s.bytes);
    const std::uint32_t from = s.kind == Kind::broadcast ? s.root : block;
    wrong += team.window(rank)[kAt + i] != byte_of(s, from, rank, i % s.bytes) ? 1 : 0;
  }
  return wrong;
}

template <class Scope>
PutStatus call(DeviceTeam& team, const TeamHandle& handle, const Step& s, const Scope& scope) {
  const char* const source = team.source(handle.rank);
  if (s.kind == Kind::alltoall) return alltoall(handle, kAt, source, s.bytes, Patience{}, scope);
  if (s.kind == Kind::allgather) return allgather(handle, kAt, source, s.bytes, Patience{}, scope);
  return broadcast(handle, s.root, kAt, s.bytes, Patience{}, scope);
}

// Every step on every rank, back to back. Wrong bytes and statuses, and canaries that were lost.
template <class Scope>
int run_steps(DeviceTeam& team, std::uint32_t lanes, const std::vector<Step>& steps) {
  std::atomic<int> wrong = 0;
  run_ranks<Scope>(team, lanes, [&](const TeamHandle& handle, const Scope& scope) {
    for (const Step& s : steps) {
      fill(team, handle.rank, s, scope);
      if (call(team, handle, s, scope) != PutStatus::done) {
        ++wrong;
        return;
      }
      wrong += count_wrong(team, handle.rank, s, scope);
      scope.sync(); // a lane that poisons the window must not be ahead of one that looks
    }
  });
  return wrong + (team.sound() ? 0 : 1);
}

std::vector<Step> all_kinds(const std::vector<std::uint64_t>& sizes, std::uint32_t ranks) {
  std::vector<Step> steps;
  for (const std::uint64_t bytes : sizes) {
    for (const Kind kind : {Kind::alltoall, Kind::allgather, Kind::broadcast}) {
      const auto epoch = static_cast<std::uint32_t>(steps.size());
      steps.push_back({kind, bytes, epoch, epoch % ranks});
    }
  }
  return steps;
}

template <class Scope>
void try_sizes(std::uint32_t lanes, std::uint32_t ranks) {
  CAPTURE(lanes);
  CAPTURE(ranks);
  TeamShape shape;
  shape.ranks = ranks;
  shape.window_bytes = kAt + ranks * std::size_t{4097};
  DeviceTeam team(shape);
  // The threshold is 256; 1024 is one packet, 1025 two, 4097 five.
  const std::vector<std::uint64_t> sizes = {0,   1,   7,   8,    63,   64,   65,  255,
                                            256, 257, 256, 1023, 1024, 1025, 255, 4097};
  CHECK(run_steps<Scope>(team, lanes, all_kinds(sizes, ranks)) == 0);
}

// Sizes on both sides of the threshold in turn, so that each way follows the other.
template <class Scope>
int run_epochs(const TeamShape& shape, std::uint32_t lanes, std::uint32_t epochs) {
  DeviceTeam team(shape);
  std::vector<Step> steps;
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    const auto kind = static_cast<Kind>(epoch % 3);
    steps.push_back({kind, epoch / 3 % 2 == 0 ? 300u : 40u, epoch, epoch % shape.ranks});
  }
  return run_steps<Scope>(team, lanes, steps);
}

} // namespace

TEST_CASE("collectives by a thread, all sizes") {
  for (const std::uint32_t ranks : {1u, 2u, 3u, 5u, 8u}) try_sizes<Thread>(1, ranks);
}

TEST_CASE("collectives by a wave of 1, 4 and 64 lanes, all sizes") {
  for (const std::uint32_t lanes : {1u, 4u, 64u}) try_sizes<Wave>(lanes, 3);
  try_sizes<Wave>(2, 5);
}

TEST_CASE("collectives by a workgroup of 1, 4 and 64 lanes, all sizes") {
  for (const std::uint32_t lanes : {1u, 4u, 64u}) try_sizes<Workgroup>(lanes, 2);
  try_sizes<Workgroup>(4, 4);
}

// Rows 41 and 45: nothing is reset, and no epoch comes from the host.
TEST_CASE("1000 epochs back to back with changing data") {
  TeamShape shape;
  shape.ranks = 3;
  CHECK(run_epochs<Thread>(shape, 1, 1000) == 0);
  CHECK(run_epochs<Wave>(shape, 4, 1000) == 0);
  shape.ranks = 2;
  CHECK(run_epochs<Workgroup>(shape, 64, 1000) == 0);
}

TEST_CASE("a ring of few packets, and one for several producers") {
  TeamShape shape;
  shape.ranks = 4;
  shape.ring_bytes = 256;
  shape.max_copy_bytes = 512;
  CHECK(run_epochs<Wave>(shape, 2, 200) == 0);
  shape.producers = Producers::several;
  CHECK(run_epochs<Wave>(shape, 2, 200) == 0);
}

TEST_CASE("without a threshold everything rides the queue") {
  TeamShape shape;
  shape.ranks = 3;
  shape.threshold = 0;
  DeviceTeam team(shape);
  CHECK(run_steps<Wave>(team, 2, all_kinds({0, 1, 8, 100}, 3)) == 0);
  for (std::uint32_t from = 0; from < 3; ++from) {
    for (std::uint32_t to = 0; to < 3; ++to) {
      CHECK((team.queue(from, to).consumed() != 0) == (from != to));
    }
  }
}

TEST_CASE("below the threshold nothing does") {
  DeviceTeam team({});
  CHECK(run_steps<Wave>(team, 2, all_kinds({0, 1, 8, 255}, 2)) == 0);
  CHECK(team.queue(0, 1).consumed() == 0);
  CHECK(team.queue(1, 0).consumed() == 0);
}

TEST_CASE("a queue that was used is settled when a collective returns") {
  DeviceTeam team({});
  CHECK(run_steps<Thread>(team, 1, {{Kind::alltoall, 1000, 0, 0}}) == 0);
  const std::uint64_t used = team.queue(0, 1).consumed();
  CHECK(used != 0);
  CHECK(run_steps<Thread>(team, 1, all_kinds({0, 255}, 2)) == 0);
  CHECK(team.queue(0, 1).consumed() == used);
}

// Rows 32, 47 and 49: slots and drains for any number of ranks, not for 8 and not for 64.
TEST_CASE("70 ranks") {
  TeamShape shape;
  shape.ranks = 70;
  shape.window_bytes = kAt + std::size_t{70} * 40;
  shape.threshold = 16;
  shape.ring_bytes = 256;
  DeviceTeam team(shape);
  CHECK(run_steps<Thread>(team, 1, all_kinds({8, 40}, 70)) == 0);
}

// Row 34: a sender far ahead raises words before the receiver's call; none of them is lost.
TEST_CASE("a rank that comes late finds the signals of those that came early") {
  DeviceTeam team({});
  std::vector<Step> steps(20, {Kind::broadcast, 64, 0, 0});
  std::atomic<int> wrong = 0;
  run_ranks<Thread>(team, 1, [&](const TeamHandle& handle, const Thread& scope) {
    for (std::uint32_t epoch = 0; epoch < 20; ++epoch) {
      Step s = steps[epoch];
      s.epoch = epoch;
      for (std::uint32_t i = 0; i < (handle.rank ^ (epoch & 1)) * 50; ++i) {
        std::this_thread::yield();
      }
      fill(team, handle.rank, s, scope);
      wrong += call(team, handle, s, scope) != PutStatus::done ? 1 : 0;
      wrong += count_wrong(team, handle.rank, s, scope);
    }
  });
  CHECK(wrong == 0);
}

// Row 45: a timeout is an error for every lane, not a result.
TEST_CASE("a collective gives up when a peer does not come") {
  DeviceTeam team({});
  std::atomic<int> timed_out = 0;
  ferry::test::run_lanes<Wave>(4, [&](const Wave& scope) {
    const PutStatus status = alltoall(team.handle(0), kAt, team.source(0), 8, Attempts(100), scope);
    timed_out += status == PutStatus::timed_out ? 1 : 0;
  });
  CHECK(timed_out == 4);
}

TEST_CASE("what a collective cannot do it refuses before it signals") {
  DeviceTeam team({});
  TeamHandle handle = team.handle(0);
  const Attempts none(0);
  const char* const source = team.source(0);
  CHECK(alltoall(handle, 0, source, 2049, none) == PutStatus::bad_address);
  CHECK(alltoall(handle, 4097, source, 0, none) == PutStatus::bad_address);
  CHECK(alltoall(handle, 0, source, ~std::uint64_t{0}, none) == PutStatus::bad_address);
  CHECK(allgather(handle, 0, nullptr, 8, none) == PutStatus::bad_address);
  CHECK(broadcast(handle, 2, 0, 8, none) == PutStatus::bad_team);
  CHECK(broadcast(handle, 1, 4090, 8, none) == PutStatus::bad_address);
  handle.version = kTeamVersion + 1;
  CHECK(alltoall(handle, 0, source, 8, none) == PutStatus::bad_team);
  CHECK(barrier(handle, none) == PutStatus::bad_team);
  for (std::uint64_t word = 0; word < signal_words(2); ++word) {
    CHECK(team.peers(0)[1].signals[word] == 0);
  }
}
