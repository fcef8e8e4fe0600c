// SPDX-License-Identifier: MIT
// The model engine by itself: what it keeps, what it does not, and that programs which rely on what
// hardware does not promise break on it.
#include "lib/engine/model_engine.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "tests/model/ring_job.hpp"

using namespace ferry::test;
using ferry::core::ModelSettings;
using ferry::core::QueueState;

namespace {

constexpr std::uint64_t kRightSeeds = 300; // on which the right program holds
constexpr std::uint64_t kWrongSeeds = 60; // within which the wrong one breaks

ModelSettings seeded(std::uint64_t seed) {
  ModelSettings settings;
  settings.seed = seed;
  return settings;
}

// Rings for source -> middle -> sink. Returns whether what arrived is what was sent.
using Arrived = bool (*)(RingJob& job);

bool runs_right(RingJob& job) {
  CHECK(job.run() == QueueState::drained);
  return job.sink == job.source;
}

// The seed on which a program breaks, 0 for none.
std::uint64_t first_break(Arrived program, std::uint64_t seeds, bool early_polls = false) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    ModelSettings settings = seeded(seed);
    settings.early_polls = early_polls;
    RingJob job(settings);
    if (!program(job)) return seed;
  }
  return 0;
}

void expect_found(const char* fault, Arrived wrong, Arrived right) {
  CAPTURE(fault);
  const std::uint64_t seed = first_break(wrong, kWrongSeeds);
  CHECK(seed != 0);
  CHECK(first_break(right, kRightSeeds) == 0);
  std::printf("found with seed %d: %s\n", static_cast<int>(seed), fault);
}

bool put_with_signal(RingJob& job) {
  job.copy(0, job.middle, job.source).add(0, job.words[0]);
  job.poll(1, job.words[0], 1).copy(1, job.sink, job.middle);
  return runs_right(job);
}

// Two messages through one buffer; the second needs an answer to the first.
bool two_messages(RingJob& job, bool answered) {
  job.copy(0, job.middle, job.source).add(0, job.words[0]);
  if (answered) job.poll(0, job.words[1], 1);
  job.copy(0, job.middle, job.second).add(0, job.words[0]);
  job.poll(1, job.words[0], 1).copy(1, job.sink, job.middle).add(1, job.words[1]);
  job.poll(1, job.words[0], 2).copy(1, job.sink2, job.middle);
  return runs_right(job) && job.sink2 == job.second;
}

// Halves on two queues, one word that counts both.
bool two_halves(RingJob& job, std::uint64_t awaited) {
  constexpr std::size_t kHalf = RingJob::kBytes / 2;
  job.copy(0, job.middle, job.source, 0, kHalf).add(0, job.words[0]);
  job.copy(1, job.middle, job.source, kHalf, kHalf).add(1, job.words[0]);
  job.poll(2, job.words[0], awaited).copy(2, job.sink, job.middle);
  return runs_right(job);
}

} // namespace

TEST_CASE("plant: a signal on another queue than its copy") {
  const auto wrong = [](RingJob& job) {
    job.copy(0, job.middle, job.source).add(1, job.words[0]);
    job.poll(2, job.words[0], 1).copy(2, job.sink, job.middle);
    return runs_right(job);
  };
  expect_found("a signal on another queue than its copy", wrong, put_with_signal);
}

TEST_CASE("plant: a WRITE used as a flag") {
  const auto wrong = [](RingJob& job) {
    job.copy(0, job.middle, job.source).write(0, job.words[0]);
    job.poll(1, job.words[0], 1).copy(1, job.sink, job.middle);
    return runs_right(job);
  };
  const auto right = [](RingJob& job) {
    job.copy(0, job.middle, job.source).fence(0, job.words[0]);
    job.poll(1, job.words[0], 1).copy(1, job.sink, job.middle);
    return runs_right(job);
  };
  expect_found("a WRITE used as a flag", wrong, right);
}

TEST_CASE("plant: no poll before data of another queue") {
  const auto wrong = [](RingJob& job) {
    job.copy(0, job.middle, job.source).add(0, job.words[0]);
    job.copy(1, job.sink, job.middle);
    return runs_right(job);
  };
  expect_found("no poll before data of another queue", wrong, put_with_signal);
}

TEST_CASE("plant: a signal behind the first of two segments") {
  constexpr std::size_t kHalf = RingJob::kBytes / 2;
  const auto wrong = [](RingJob& job) {
    job.copy(0, job.middle, job.source, 0, kHalf).add(0, job.words[0]);
    job.copy(0, job.middle, job.source, kHalf, kHalf);
    job.poll(1, job.words[0], 1).copy(1, job.sink, job.middle);
    return runs_right(job);
  };
  const auto right = [](RingJob& job) {
    job.copy(0, job.middle, job.source, 0, kHalf);
    job.copy(0, job.middle, job.source, kHalf, kHalf).add(0, job.words[0]);
    job.poll(1, job.words[0], 1).copy(1, job.sink, job.middle);
    return runs_right(job);
  };
  expect_found("a signal behind the first of two segments", wrong, right);
}

TEST_CASE("plant: rptr taken for arrival") {
  const auto wrong = [](RingJob& job) {
    job.copy(0, job.middle, job.source);
    job.poll_rptr(1, 0).copy(1, job.sink, job.middle);
    return runs_right(job);
  };
  expect_found("rptr taken for arrival", wrong, put_with_signal);
}

TEST_CASE("plant: a buffer used again without an answer") {
  expect_found(
      "a buffer used again without an answer",
      [](RingJob& job) { return two_messages(job, false); },
      [](RingJob& job) { return two_messages(job, true); });
}

TEST_CASE("plant: one signal awaited where two come") {
  expect_found(
      "one signal awaited where two come", [](RingJob& job) { return two_halves(job, 1); },
      [](RingJob& job) { return two_halves(job, 2); });
}

TEST_CASE("a poll that returns early lets the right program break, and only in that mode") {
  CHECK(first_break(put_with_signal, kWrongSeeds, true) != 0);
  CHECK(first_break(put_with_signal, kRightSeeds, false) == 0);
}

TEST_CASE("copies of one queue follow each other, and a signal follows all of them") {
  for (std::uint64_t seed = 1; seed <= kRightSeeds; ++seed) {
    RingJob job(seeded(seed));
    job.copy(0, job.middle, job.source).copy(0, job.sink, job.middle);
    job.copy(0, job.middle, job.second).copy(0, job.sink2, job.middle).add(0, job.words[0]);
    job.publish();
    bool early = false;
    QueueState state = QueueState::blocked;
    for (int i = 0; i < 100'000 && state != QueueState::drained; ++i) {
      state = job.turn();
      const bool landed = job.sink == job.source && job.sink2 == job.second;
      early |= job.words[0] != 0 && !landed;
    }
    REQUIRE(state == QueueState::drained);
    REQUIRE_FALSE(early);
    REQUIRE(job.words[0] == 1);
    REQUIRE(job.sink == job.source);
    REQUIRE(job.sink2 == job.second);
  }
}

TEST_CASE("the freedom is used: parts are seen, writes overtake, signals are late") {
  std::uint64_t parts_seen = 0;
  std::uint64_t overtaking = 0;
  std::uint64_t late = 0;
  std::uint64_t stalls = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    RingJob job(seeded(seed));
    job.copy(0, job.middle, job.source).write(0, job.words[1]).add(0, job.words[0]);
    job.copy(0, job.sink, job.source);
    job.publish();
    bool seen = false;
    for (int i = 0; i < 100'000 && job.turn() != QueueState::drained; ++i) {
      seen |= job.middle != job.source && job.middle != RingJob::Area{};
    }
    parts_seen += seen ? 1 : 0;
    overtaking += job.engine.counts().overtaking_writes;
    late += job.engine.counts().late_signals;
    stalls += job.engine.counts().stalls;
  }
  CHECK(parts_seen > 5);
  CHECK(overtaking > 5);
  CHECK(late > 5);
  CHECK(stalls > 5);
}

TEST_CASE("the same seed is the same run") {
  const auto trace = [](std::uint64_t seed) {
    RingJob job(seeded(seed));
    CHECK(two_messages(job, true));
    return job.engine.counts().trace.load();
  };
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CHECK(trace(seed) == trace(seed));
    CHECK(trace(seed) != trace(seed + 1));
  }
}

TEST_CASE("a bad packet at any place stops its queue there, with number and offset") {
  constexpr std::uint64_t kPackets = 8;
  constexpr std::uint64_t kPacketBytes = 32;
  for (std::uint64_t bad = 0; bad < kPackets; ++bad) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      ModelSettings settings = seeded(seed);
      settings.bad_packet = {1, bad};
      RingJob job(settings);
      for (std::size_t i = 0; i < kPackets; ++i) job.add(0, job.words[8 + i % 8]);
      for (std::size_t i = 0; i < kPackets; ++i) job.add(1, job.words[i]);
      REQUIRE(job.run() == QueueState::failed);
      char where[64];
      std::snprintf(
          where, sizeof where,
          "queue 1 offset %#llx:", static_cast<unsigned long long>(bad * kPacketBytes));
      const std::string wanted = bad == 0 ? "queue 1 offset 0x0:" : where;
      CHECK(job.queue(1).error().cause.find(wanted) == 0);
      CHECK(job.queue(1).error().cause.find("unknown packet 0x000000ff") != std::string::npos);
      CHECK_FALSE(job.queue(0).failed());
      for (std::uint64_t i = bad; i < kPackets; ++i) CHECK(job.words[i] == 0);
    }
  }
}

TEST_CASE("packets that the decoder refuses fail here as well, whole or in parts") {
  const auto cause = [](const Dwords& packet) {
    RingJob job(seeded(3));
    job.add(0, job.words[0]).append(0, packet);
    CHECK(job.run() == QueueState::failed);
    return job.queue(0).error().cause;
  };
  CHECK(cause({0xff}).find("queue 0 offset 0x20: unknown packet") == 0);
  CHECK(cause({1, 511, 0, 0, 0, 0, 0}).find("queue 0 offset 0x20: COPY_LINEAR from 0x0") == 0);
  CHECK(cause({1, 511, 0, 64, 0, 64, 0}).find("offset 0x20: COPY_LINEAR") != std::string::npos);
  CHECK(cause({1, 511, 0}).find("cut off by the doorbell") != std::string::npos);
  CHECK(cause({10 | 47u << 25, 64, 0, 1, 0, 0, 0, 0}).find("lies in no") != std::string::npos);
}

TEST_CASE("a queue that stands still goes on later; one that died does not, and says nothing") {
  for (const std::uint64_t turns : {std::uint64_t{500}, ModelSettings::kForEver}) {
    ModelSettings settings = seeded(5);
    settings.stall = {0, 1};
    settings.stall_turns = turns;
    RingJob job(settings);
    job.add(0, job.words[0]).add(0, job.words[1]);
    job.copy(1, job.sink, job.source).add(1, job.words[2]);
    job.publish();
    for (int i = 0; i < 200; ++i) job.turn();
    CHECK(job.words[0] == 1);
    CHECK(job.words[1] == 0);
    CHECK(job.words[2] == 1); // the other queue does not care
    QueueState state = QueueState::blocked;
    for (int i = 0; i < 20'000 && state != QueueState::drained; ++i) state = job.turn();
    CHECK((state == QueueState::drained) == (turns == 500));
    CHECK(job.words[1] == (turns == 500 ? 1u : 0u));
    CHECK_FALSE(job.queue(0).failed());
  }
}

TEST_CASE("a queue that was retired while it waited goes on when it is submitted again") {
  RingJob job(seeded(9));
  job.poll(0, job.words[0], 1).add(0, job.words[1]);
  job.publish();
  for (int i = 0; i < 100; ++i) CHECK(job.turn() != QueueState::drained);
  ferry::core::Queue* const queue = &job.queue(0);
  job.engine.retire({&queue, 1});
  job.words[0] = 1;
  CHECK(job.run() == QueueState::drained);
  CHECK(job.words[1] == 1);
}
