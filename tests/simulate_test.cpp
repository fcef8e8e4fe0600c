// SPDX-License-Identifier: MIT
// What an epoch takes by the model, against times worked out by hand.
#include <doctest/doctest.h>
#include <vector>

#include "collectives/planner.hpp"
#include "lib/schedule/simulate.hpp"

using namespace ferry::core;

namespace {

// Powers that tell in a sum what it is made of.
constexpr StepCosts kCosts{1000, 1, 10'000, 100'000, 100};

struct Job {
  PlanInput input;
  std::vector<BufferFacts> facts;

  Job(Operation operation, int ranks, std::uint64_t bytes, bool mapped = true) {
    input.operation = operation;
    input.ranks = ranks;
    input.block_bytes = bytes;
    facts.assign(static_cast<std::size_t>(ranks), {mapped, mapped, true, true});
  }

  SimulateInput question(bool one_thread = true, bool symmetric = false) {
    SimulateInput question;
    question.ranks = input.ranks;
    question.costs = kCosts;
    question.one_thread = one_thread;
    question.symmetric = symmetric;
    question.plan = [this](int rank) {
      input.rank = rank;
      input.facts = facts;
      return plan_collective(input);
    };
    return question;
  }
};

constexpr double kPut = 1000 + 64 + 10'000; // of 64 bytes into a slot, with its flag
constexpr double kGet = 100 + 1000 + 64;

} // namespace

TEST_CASE("simulate: the sums of small jobs") {
  Job broadcast(Operation::broadcast, 3, 64);
  const Simulation one = simulate(broadcast.question());
  CHECK(one.fault == "");
  CHECK(one.ns == doctest::Approx(kPut + 100'000 + kGet));
  CHECK(one.bytes == 3 * 64);
  CHECK(one.plans == 3);

  // The first block is taken while the second is under way, the own one before both.
  Job alltoall(Operation::alltoall, 3, 64);
  const Simulation all = simulate(alltoall.question());
  CHECK(all.ns == doctest::Approx(2 * kPut + 100'000 + kGet));
  CHECK(all.bytes == 3 * (2 + 2 + 1) * 64); // into slots, out of them, own blocks

  Job alone(Operation::allgather, 1, 64);
  CHECK(simulate(alone.question()).ns == doctest::Approx(1064));
}

TEST_CASE("simulate: queues with engines of their own run side by side, one thread takes turns") {
  Job job(Operation::alltoall, 5, 100'000);
  const Simulation apart = simulate(job.question(false));
  const Simulation together = simulate(job.question(true));
  CHECK(apart.fault == "");
  CHECK(together.fault == "");
  CHECK(apart.bytes == together.bytes);
  CHECK(apart.steps == together.steps);
  CHECK(together.ns - apart.ns > 2 * 100'000); // at least two of the copies follow others
}

TEST_CASE("simulate: rank 0 stands for all where plans are alike") {
  for (Operation operation : {Operation::alltoall, Operation::allgather}) {
    for (int ranks = 2; ranks < 20; ++ranks) {
      for (const std::uint64_t bytes : {8, 1000, 5000, 600'000}) {
        for (const bool mapped : {true, false}) {
          Job job(operation, ranks, bytes, mapped);
          CAPTURE(name_of(operation));
          CAPTURE(ranks);
          CAPTURE(bytes);
          CAPTURE(mapped);
          const Simulation whole = simulate(job.question(false));
          const Simulation part = simulate(job.question(false, true));
          CHECK(part.fault == "");
          CHECK(part.ns == doctest::Approx(whole.ns));
          CHECK(part.steps * static_cast<std::uint64_t>(ranks) == whole.steps);
        }
      }
    }
  }
}

TEST_CASE("simulate: a signal that nobody sends is named") {
  Job job(Operation::broadcast, 4, 64);
  SimulateInput question = job.question();
  const auto plan = question.plan;
  question.plan = [plan](int rank) {
    Schedule schedule = plan(rank);
    if (rank == 0) schedule.queues.front().steps.pop_back();
    return schedule;
  };
  const std::string fault = simulate(question).fault;
  CAPTURE(fault);
  CHECK(fault.find("rank 1 queue 0 step 0 (") == 0);
  CHECK(fault.find("waits for ever") != std::string::npos);
}

TEST_CASE("simulate: schedules that are too many to keep are asked for again") {
  Job job(Operation::alltoall, 1200, 8); // 5 million steps
  const Simulation all = simulate(job.question());
  CHECK(all.fault == "");
  CHECK(all.plans > 1200);
  CHECK(all.plans <= 2400);
  CHECK(all.bytes == 1200 * (2 * 1199 + 1) * 8);
  const Simulation one = simulate(job.question(true, true));
  CHECK(one.ns == doctest::Approx(all.ns));
}

TEST_CASE("simulate: a hundred thousand ranks") {
  Job broadcast(Operation::broadcast, 100'000, 64);
  const Simulation one = simulate(broadcast.question());
  CHECK(one.fault == "");
  CHECK(one.steps == 2 + 2 * 99'999);
  CHECK(one.ns == doctest::Approx(kPut + 100'000 + kGet));
  Job alltoall(Operation::alltoall, 100'000, 8);
  const Simulation all = simulate(alltoall.question(true, true));
  CHECK(all.fault == "");
  CHECK(all.steps == 4 * 99'999 + 1);
}
