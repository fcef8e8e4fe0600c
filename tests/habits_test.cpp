// SPDX-License-Identifier: MIT
// Calls of middle size that repeat: whether a call goes through slots or straight into the receive
// buffers follows from what the last one of its kind met, alike on all ranks.
#include <doctest/doctest.h>

#include <random>

#include "lib/exec/habits.hpp"
#include "lib/exec/lane.hpp"
#include "support/thread_job.hpp"

using namespace ferry::test;
using namespace ferry::core;

namespace {

struct Step {
  Call call;
  std::vector<Memory> recv; // of each rank
  bool straight = false; // what the oracle says of the path
};

// Calls around the limits, each rank with memory of its own; most receive buffers are mapped.
std::vector<Step> write_steps(int ranks, std::uint64_t seed) {
  constexpr int kSteps = 150;
  const PlanLimits limits = plan_limits(config(), ranks, false);
  std::mt19937_64 random(seed);
  const std::size_t sizes[] = {
      limits.direct_bytes, limits.direct_bytes + 1, 1500, limits.slot_bytes, limits.slot_bytes + 1};
  Habits habits; // sizes may meet in one entry here as there
  std::vector<Step> steps;
  for (int i = 0; i < kSteps; ++i) {
    Step step;
    step.call.operation = random() % 2 == 0 ? Operation::alltoall : Operation::allgather;
    step.call.in_place = random() % 8 == 0;
    step.call.bytes = sizes[random() % std::size(sizes)];
    const bool favour = random() % 4 != 0;
    bool all = true;
    for (int rank = 0; rank < ranks; ++rank) {
      const bool mapped = favour || random() % 2 == 0;
      step.recv.push_back(mapped ? Memory::mapped : Memory::foreign);
      all = all && mapped;
    }
    const bool twice = step.call.in_place && step.call.operation == Operation::alltoall;
    const bool middle =
        step.call.bytes > limits.direct_bytes && step.call.bytes <= limits.slot_bytes && !twice;
    const bool habit = middle && habits.direct(step.call.operation, step.call.bytes);
    step.straight = habit || step.call.bytes > limits.slot_bytes;
    if (middle) habits.learn(step.call.operation, step.call.bytes, all);
    steps.push_back(step);
  }
  return steps;
}

void play(int ranks, std::uint64_t seed) {
  const std::vector<Step> steps = write_steps(ranks, seed);
  const auto meeting = std::make_shared<Meeting>(ranks);
  Faults faults;
  run_ranks(ranks, faults, [&](int rank) {
    const Comm comm = make_comm(meeting, rank, "one with habits", roomy);
    std::mt19937_64 random(seed * 64 + static_cast<std::uint64_t>(rank));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      const Memory send = random() % 2 == 0 ? Memory::mapped : Memory::foreign;
      Operands operands(step.call, rank, ranks, send, step.recv[static_cast<std::size_t>(rank)]);
      operands.prepare(i);
      const Status status = run_blocking(comm, operands.desc(Form::blocking));
      const std::string fault = status.ok() ? operands.check(i) : status.cause;
      const std::string path = comm->explain_last();
      const std::string where = describe(step.call) + ", step " + std::to_string(i) + ": ";
      faults.expect(fault.empty(), where + fault);
      faults.expect(path.rfind(step.straight ? "engine: " : "slots: ", 0) == 0, where + path);
    }
  });
  CAPTURE(ranks);
  CAPTURE(seed);
  CHECK(faults.first() == "");
}

} // namespace

TEST_CASE("habits: random calls take the path that their last one told, on all ranks alike") {
  for (const int ranks : {2, 3, 4, 7}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) play(ranks, seed);
  }
}

TEST_CASE("habits: sizes that meet in one entry forget each other") {
  Habits habits;
  for (std::uint64_t bytes = 1; bytes <= 1000; ++bytes) {
    CHECK(!habits.direct(Operation::alltoall, bytes));
    habits.learn(Operation::alltoall, bytes, true);
    CHECK(habits.direct(Operation::alltoall, bytes));
    CHECK(!habits.direct(Operation::allgather, bytes));
  }
  habits.learn(Operation::alltoall, 1000, false);
  CHECK(!habits.direct(Operation::alltoall, 1000));
}
