// SPDX-License-Identifier: MIT
// Whole jobs on the model engine: what Ferry plans holds on an engine that uses all its freedom.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/model/script.hpp"

using namespace ferry::test;
using ferry::core::ErrorKind;
using ferry::core::Form;
using ferry::core::ModelSettings;
using ferry::core::Operation;
using ferry::core::Status;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kSlowness = 8;
#else
constexpr std::uint64_t kSlowness = 1;
#endif

// A loaded machine may end with fewer; how many is printed.
constexpr double kSeconds = 12;

using Play = std::string (*)(const Script& script);

void play_seeds(std::uint64_t seeds, const char* what, Play play) {
  if (const char* seed = std::getenv("TEST_SEED")) {
    CHECK(play(random_script(std::strtoull(seed, nullptr, 10))) == "");
    return;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kSeconds);
  std::uint64_t steps = 0;
  std::uint64_t seed = 1;
  for (; seed <= seeds / kSlowness && std::chrono::steady_clock::now() < end; ++seed) {
    const std::string fault = play(random_script(seed));
    CHECK(fault == "");
    if (!fault.empty()) break;
    steps += model_engine().counts().steps;
  }
  std::printf(
      "%llu seeds %s, %llu steps of the engine\n", static_cast<unsigned long long>(seed - 1), what,
      static_cast<unsigned long long>(steps));
}

// One collective of all ranks, whose bytes go through rings.
Script one_call(Operation operation, Form form, int ranks) {
  const auto all = static_cast<std::size_t>(ranks);
  Script script{1, ranks, {}, {0}};
  script.entries.push_back(
      {{operation, false, 0, 9000},
       form,
       std::vector<Memory>(all, Memory::mapped),
       std::vector<Memory>(all, Memory::mapped)});
  return script;
}

} // namespace

TEST_CASE("model: every operation, form and memory on 2 to 5 ranks, one thread drives all") {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    for (int placing = 0; placing < kPlacings; ++placing) {
      CHECK(play_alone(grid_script(static_cast<std::uint64_t>(placing) + 1, ranks, placing)) == "");
    }
  }
}

TEST_CASE("model: every operation, form and memory on 2 to 5 ranks, each a thread") {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    for (int placing = 0; placing < kPlacings; ++placing) {
      const auto seed = static_cast<std::uint64_t>(placing) + 1;
      CHECK(play_threads(grid_script(seed, ranks, placing)) == "");
    }
  }
}

TEST_CASE("model: hundreds of seeds, one thread drives all ranks") {
  play_seeds(400, "driven by one thread", [](const Script& script) { return play_alone(script); });
}

TEST_CASE("model: hundreds of seeds, each rank a thread") {
  play_seeds(300, "with a thread for each rank", [](const Script& script) {
    return play_threads(script);
  });
}

TEST_CASE("model: the same seed is the same run, another is another") {
  const auto trace = [](std::uint64_t seed) {
    Script script = random_script(7);
    script.seed = seed;
    CHECK(play_alone(script) == "");
    return model_engine().counts().trace.load();
  };
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const std::uint64_t first = trace(seed);
    CHECK(trace(seed) == first);
    CHECK(trace(seed + 1) != first);
  }
}

TEST_CASE("model: jobs meet all that the engine may do") {
  const auto& counts = model_engine().counts();
  std::uint64_t parted = 0;
  std::uint64_t late = 0;
  std::uint64_t stalls = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CHECK(play_alone(random_script(seed)) == "");
    parted += counts.parted_copies;
    late += counts.late_signals;
    stalls += counts.stalls;
    CHECK(counts.overtaking_writes == 0); // no plan holds a WRITE
  }
  CHECK(parted > 0);
  CHECK(late > 0);
  CHECK(stalls > 0);
}

TEST_CASE("model: a queue that stands still for long delays a job and breaks nothing") {
  for (std::uint64_t packet = 0; packet < 4; ++packet) {
    ModelSettings settings;
    settings.stall = {0, packet};
    settings.stall_turns = 5000;
    CHECK(play_alone(one_call(Operation::alltoall, Form::persistent, 3), settings) == "");
  }
}

TEST_CASE("model: polls that return early are noticed") {
  ModelSettings settings;
  settings.early_polls = true;
  int noticed = 0;
  for (std::uint64_t seed = 1; seed <= 40 && noticed == 0; ++seed) {
    Script script = one_call(Operation::alltoall, Form::persistent, 3);
    script.seed = seed;
    script.order.assign(6, 0);
    if (!play_alone(script, settings).empty()) ++noticed;
  }
  CHECK(noticed > 0);
}

TEST_CASE("fault: a bad packet anywhere ends its rank with its queue and offset, nobody hangs") {
  for (const Form form : {Form::nonblocking, Form::persistent}) {
    int hits = 0;
    for (std::uint64_t packet = 0; packet < 4; ++packet) {
      ModelSettings settings;
      settings.bad_packet = {0, packet};
      std::vector<Status> ends;
      if (play_threads(one_call(Operation::alltoall, form, 2), settings, &ends).empty()) continue;
      ++hits;
      int bad = 0;
      for (const Status& end : ends) {
        if (end.kind == ErrorKind::bad_packet) {
          ++bad;
          CHECK(end.cause.find("queue 1 offset 0x") != std::string::npos);
          CHECK(end.cause.find("unknown packet") != std::string::npos);
        } else if (!end.ok()) {
          CHECK(end.kind == ErrorKind::timeout);
          CHECK(end.cause.find("from rank") != std::string::npos);
        }
      }
      CHECK(bad == 1);
    }
    CHECK(hits >= 2); // a copy and its signal at least
  }
}

TEST_CASE("fault: an engine that died ends every wait with a name") {
  for (const Operation operation :
       {Operation::alltoall, Operation::allgather, Operation::broadcast}) {
    ModelSettings settings;
    settings.stall = {0, 0};
    std::vector<Status> ends;
    CHECK(play_threads(one_call(operation, Form::persistent, 2), settings, &ends) != "");
    int named = 0;
    for (const Status& end : ends) {
      if (end.ok()) continue;
      CHECK(end.kind == ErrorKind::timeout);
      const bool queue = end.cause.find("queue 1 to rank") != std::string::npos;
      const bool peer = end.cause.find("from rank") != std::string::npos;
      CHECK((queue || peer));
      if (queue || peer) ++named;
    }
    CHECK(named >= 1);
  }
}
