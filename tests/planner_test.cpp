// SPDX-License-Identifier: MIT
// Every planner, verified over whole jobs in one process.
#include <doctest/doctest.h>
#include <random>
#include <vector>

#include "collectives/planner.hpp"

using namespace ferry::core;

namespace {

struct Job {
  PlanInput input;
  std::vector<BufferFacts> facts;

  std::vector<Schedule> plan() {
    std::vector<Schedule> schedules;
    input.facts = facts;
    for (int rank = 0; rank < input.ranks; ++rank) {
      input.rank = rank;
      schedules.push_back(plan_collective(input));
    }
    return schedules;
  }

  VerifyInput expectation() const {
    return {input.in_place, input.root, input.block_bytes, input.handshake, {}};
  }
};

BufferFacts random_facts(std::mt19937_64& random) {
  BufferFacts facts;
  facts.send_plain = random() % 4 != 0;
  facts.recv_plain = random() % 4 != 0;
  facts.send_mapped = facts.send_plain && random() % 2 == 0;
  facts.recv_mapped = facts.recv_plain && random() % 2 == 0;
  return facts;
}

Job random_job(std::mt19937_64& random, Operation operation, int ranks) {
  Job job;
  job.input.operation = operation;
  job.input.ranks = ranks;
  job.input.root = static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
  job.input.in_place = operation != Operation::broadcast && random() % 3 == 0;
  job.input.handshake = random() % 2 == 0;
  job.input.attach = random() % 4 == 0;
  job.input.limits.slot_bytes = random() % 3 == 0 ? 0 : 64;
  job.input.limits.direct_bytes = random() % 2 == 0 ? 64 : 8;
  job.input.limits.share_from = random() % 2 == 0 ? 0 : 65;
  job.input.limits.stage_bytes = 64;
  job.input.limits.stage_depth = 1 + static_cast<int>(random() % 3);
  const std::uint64_t sizes[] = {0, 1, 8, 63, 64, 65, 127, 128, 129, 1000, 5000, 100'000};
  job.input.block_bytes = sizes[random() % std::size(sizes)];
  for (int rank = 0; rank < ranks; ++rank) {
    job.facts.push_back(random_facts(random));
  }
  return job;
}

constexpr Operation kOperations[] = {
    Operation::alltoall, Operation::allgather, Operation::broadcast};

} // namespace

TEST_CASE("planners: random descriptions at 1..16 ranks pass verify") {
  std::mt19937_64 random(1);
  for (Operation operation : kOperations) {
    for (int ranks = 1; ranks <= 16; ++ranks) {
      for (int round = 0; round < 24; ++round) {
        Job job = random_job(random, operation, ranks);
        const auto schedules = job.plan();
        const std::string fault = verify(schedules, job.expectation(), random());
        CAPTURE(name_of(operation));
        CAPTURE(ranks);
        CAPTURE(job.input.block_bytes);
        CAPTURE(job.input.in_place);
        CHECK(fault == "");
      }
    }
  }
}

namespace {

// An exchange: who sends how much to whom, and what the two can do with each other's blocks.
struct Exchange {
  PlanInput input;
  std::vector<std::uint64_t> bytes; // [from * ranks + to]
  std::vector<BufferFacts> facts; // [rank * ranks + other]

  Exchange(std::mt19937_64& random, int ranks) {
    input.operation = Operation::alltoall;
    input.ranks = ranks;
    input.in_place = random() % 4 == 0;
    input.handshake = random() % 2 == 0;
    input.attach = random() % 3 == 0;
    input.limits.slot_bytes = random() % 3 == 0 ? 0 : 64;
    input.limits.stage_bytes = 64;
    input.limits.stage_depth = 1 + static_cast<int>(random() % 3);
    const std::uint64_t sizes[] = {0, 0, 1, 63, 64, 65, 129, 1000};
    const auto n = static_cast<std::size_t>(ranks);
    bytes.resize(n * n);
    for (std::uint64_t& size : bytes) size = sizes[random() % std::size(sizes)];
    const bool root_only = random() % 4 == 0; // gather
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (root_only && !input.in_place && j != 0) bytes[i * n + j] = 0;
        if (input.in_place && i < j) bytes[i * n + j] = bytes[j * n + i];
        facts.push_back(random_facts(random));
      }
    }
  }

  std::vector<Schedule> plan(Part part) {
    std::vector<Schedule> schedules;
    input.part = part;
    const auto n = static_cast<std::size_t>(input.ranks);
    for (std::size_t me = 0; me < n; ++me) {
      std::vector<PairPlan> pairs;
      for (std::size_t peer = 0; peer < n; ++peer) {
        pairs.push_back(
            {bytes[me * n + peer], bytes[peer * n + me], facts[me * n + peer],
             facts[peer * n + me]});
      }
      input.rank = static_cast<int>(me);
      input.pairs = pairs;
      schedules.push_back(plan_collective(input));
    }
    return schedules;
  }
};

} // namespace

TEST_CASE("exchange: random sizes and buffers at 2..16 ranks pass verify") {
  std::mt19937_64 random(5);
  for (int ranks = 2; ranks <= 16; ++ranks) {
    for (int round = 0; round < 60; ++round) {
      Exchange exchange(random, ranks);
      CAPTURE(ranks);
      CAPTURE(round);
      const auto& input = exchange.input;
      const std::string fault = verify(
          exchange.plan(Part::all), {input.in_place, 0, 0, input.handshake, exchange.bytes},
          random());
      CHECK(fault == "");
    }
  }
}

TEST_CASE("exchange: its two parts together are the whole") {
  std::mt19937_64 random(6);
  for (int round = 0; round < 50; ++round) {
    Exchange exchange(random, 5);
    const auto slots = exchange.plan(Part::slots);
    const auto transfers = exchange.plan(Part::transfers);
    auto both = transfers;
    for (std::size_t rank = 0; rank < both.size(); ++rank) {
      // As two queues of their own, in any order.
      both[rank].slot_bytes = slots[rank].slot_bytes;
      both[rank].slot_count = slots[rank].slot_count;
      both[rank].queues.push_back(slots[rank].queues.front());
    }
    const auto& input = exchange.input;
    CHECK(verify(both, {input.in_place, 0, 0, input.handshake, exchange.bytes}, random()) == "");
  }
}

TEST_CASE("planners: 64 ranks and huge blocks cost no memory to verify") {
  for (Operation operation : kOperations) {
    Job job;
    job.input.operation = operation;
    job.input.ranks = 64;
    job.input.root = 63;
    job.input.block_bytes = std::uint64_t{1} << 40;
    job.facts.assign(64, {true, true, true, true});
    CHECK(verify(job.plan(), job.expectation(), 7) == "");
  }
}

TEST_CASE("planners: the same plan comes out on every call") {
  std::mt19937_64 random(3);
  Job job = random_job(random, Operation::alltoall, 5);
  const auto once = job.plan();
  const auto twice = job.plan();
  for (std::size_t rank = 0; rank < once.size(); ++rank) {
    CHECK(print(once[rank]) == print(twice[rank]));
  }
}

namespace {

// Drops, repeats or swaps one step; most such faults must be seen under one of a few interleavings.
bool plant_and_look(Job& job, std::mt19937_64& random, StepKind kind) {
  auto schedules = job.plan();
  std::vector<std::pair<std::size_t, std::pair<std::size_t, std::size_t>>> places;
  for (std::size_t r = 0; r < schedules.size(); ++r) {
    for (std::size_t q = 0; q < schedules[r].queues.size(); ++q) {
      for (std::size_t s = 0; s < schedules[r].queues[q].steps.size(); ++s) {
        if (schedules[r].queues[q].steps[s].kind == kind) places.push_back({r, {q, s}});
      }
    }
  }
  const auto [rank, where] = places[random() % places.size()];
  auto& steps = schedules[rank].queues[where.first].steps;
  steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(where.second));
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    if (!verify(schedules, job.expectation(), seed).empty()) return true;
  }
  return false;
}

} // namespace

TEST_CASE("verify: a copy, signal or wait left out is found") {
  std::mt19937_64 random(11);
  for (Operation operation : kOperations) {
    for (bool mapped : {false, true}) {
      for (StepKind kind : {StepKind::copy, StepKind::signal, StepKind::await}) {
        Job job;
        job.input.operation = operation;
        job.input.ranks = 3;
        job.input.block_bytes = 300;
        job.input.limits = {0, 0, 64, 2};
        job.facts.assign(3, {mapped, mapped});
        for (int round = 0; round < 10; ++round) {
          CAPTURE(name_of(operation));
          CAPTURE(mapped);
          CAPTURE(static_cast<int>(kind));
          CHECK(plant_and_look(job, random, kind));
        }
      }
    }
  }
}

TEST_CASE("verify: a copy to the wrong place is found") {
  Job job;
  job.input.operation = Operation::alltoall;
  job.input.ranks = 3;
  job.input.block_bytes = 4096;
  job.input.limits.slot_bytes = 0;
  job.facts.assign(3, {true, true});
  auto schedules = job.plan();
  for (auto& step : schedules[1].queues[1].steps) {
    if (step.kind == StepKind::copy) step.to.offset += 1;
  }
  CHECK(verify(schedules, job.expectation(), 1) != "");
}

TEST_CASE("verify: steps beyond the slots or the stage that were asked for are found") {
  for (std::uint64_t slot_bytes : {0, 64}) {
    Job job;
    job.input.operation = Operation::alltoall;
    job.input.ranks = 3;
    job.input.block_bytes = 60;
    job.input.limits = {slot_bytes, slot_bytes, 64, 2};
    job.facts.assign(3, {false, false});
    auto schedules = job.plan();
    CHECK(verify(schedules, job.expectation(), 1) == "");
    schedules[2].stage_bytes /= 2;
    schedules[2].slot_count -= 1;
    // The last rank's own slot is not used, so one less still fits: two less do not.
    schedules[2].slot_count -= 1;
    CHECK(verify(schedules, job.expectation(), 1).find("rank 2: ") == 0);
  }
}

TEST_CASE("print: a person can read which bytes go where") {
  Job job;
  job.input.operation = Operation::allgather;
  job.input.ranks = 2;
  job.input.block_bytes = 65536;
  job.facts.assign(2, {true, true});
  const std::string text = print(job.plan()[1]);
  CHECK(text.find("allgather rank 1 of 2, path engine") != std::string::npos);
  CHECK(text.find("copy   65536 bytes send@1[0]+0 -> recv@0[1]+0") != std::string::npos);
  CHECK(text.find("await  moved from rank 0 number 1") != std::string::npos);
}
