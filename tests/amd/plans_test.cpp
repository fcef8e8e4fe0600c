// SPDX-License-Identifier: MIT
// Plans on modelled GPUs over their life: many starts, reuse, the end.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/amd/rig.hpp"

namespace ferry::test {
namespace {

using core::Operation;

constexpr std::size_t kBlock = 3000;
const Trial kTrial{Operation::alltoall, kBlock};

TEST_CASE("amd: 200 starts with changing data, many laps of each ring") {
  Rig rig({});
  Trial trial = kTrial;
  trial.block = 256;
  trial.starts = 200;
  CHECK(run_trial(rig, trial) == 0);
}

TEST_CASE("amd: counts of signals that cross 2^32, start by start") {
  for (const std::uint64_t before : {0, 1, 2, 3}) {
    CAPTURE(before);
    RigSettings settings;
    settings.options.set_up.first = (std::uint64_t{1} << 32) - 4 * before;
    Rig rig(settings);
    for (const bool in_place : {false, true}) {
      CHECK(run_trial(rig, {Operation::alltoall, 700, in_place, 0, 8}) == 0);
    }
  }
}

TEST_CASE("amd: packets of a copy that is split, and its signal behind the last") {
  RigSettings settings;
  settings.options.set_up.max_packet_bytes = 1024;
  Rig rig(settings);
  for (const std::size_t block : {1023, 1024, 1025, 10000}) {
    CAPTURE(block);
    CHECK(run_trial(rig, {Operation::alltoall, block}) == 0);
  }
}

TEST_CASE("amd: several plans at once, started in another order on each rank") {
  Rig rig({});
  MpiTeam first_team = rig.fresh_team();
  MpiTeam second_team = rig.fresh_team();
  TrialRun first(rig, first_team, kTrial);
  TrialRun second(rig, second_team, {Operation::allgather, kBlock});
  for (int iteration = 1; iteration <= 3; ++iteration) {
    first.fill(iteration);
    second.fill(iteration);
    const bool swapped = rig.rank() % 2 == 1;
    (swapped ? second : first).plan().start();
    (swapped ? first : second).plan().start();
    CHECK(finish(first.plan()).ok());
    CHECK(finish(second.plan()).ok());
    CHECK(first.wrong(iteration) == 0);
    CHECK(second.wrong(iteration) == 0);
  }
}

TEST_CASE("amd: queues and mappings are made once, and used again") {
  Rig rig({});
  CHECK(run_trial(rig, kTrial) == 0);
  amd::Devices& devices = rig.backend().devices();
  const std::size_t made = devices.kfd.pool->made();
  const std::size_t queues = rig.kernel().queues();
  CHECK(made == std::size_t(rig.ranks()));
  MpiTeam team = rig.fresh_team();
  auto send = std::make_unique<RigBuffer>(rig, kBlock);
  for (int round = 0; round < 6; ++round) CHECK(run_trial(rig, kTrial) == 0);
  CHECK(devices.kfd.pool->made() == made);
  CHECK(rig.kernel().queues() == queues);
  CHECK(devices.kfd.pool->idle() == made);
}

TEST_CASE("amd: buffers that are used by many plans are mapped once") {
  Rig rig({});
  MpiTeam team = rig.fresh_team();
  TrialRun first(rig, team, kTrial);
  const std::size_t before = rig.rocr().attachments();
  RigBuffer buffer(rig, kBlock);
  core::CollectiveDesc desc;
  desc.operation = Operation::broadcast;
  desc.send = desc.recv = buffer.data();
  desc.send_layout = desc.recv_layout = core::contiguous_layout(kBlock, 1);
  std::vector<std::unique_ptr<core::DevicePlan>> plans;
  for (int round = 0; round < 3; ++round) {
    plans.push_back(rig.backend().make_plan(desc, team));
    plans.back()->start();
    CHECK(finish(*plans.back()).ok());
  }
  const auto others = static_cast<std::size_t>(rig.ranks() - 1);
  // The buffer of each other rank once; signals and the arena of the trial with each plan.
  CHECK(rig.rocr().attachments() - before == others * (1 + 3 * 2));
}

TEST_CASE("amd: memory that is freed and allocated again is another allocation") {
  Rig rig({});
  for (int round = 0; round < 5; ++round) CHECK(run_trial(rig, kTrial) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  // Of five rounds, the mappings of the last remain at most.
  CHECK(rig.rocr().attached() <= static_cast<std::size_t>(rig.ranks() - 1) * 5);
}

TEST_CASE("amd: a plan that ends with starts programmed ahead takes its queues with it") {
  Rig rig({});
  amd::Devices& devices = rig.backend().devices();
  {
    MpiTeam team = rig.fresh_team();
    TrialRun run(rig, team, kTrial);
    CHECK(run.plan().arm(2).starts == 2);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  CHECK(devices.kfd.pool->idle() == 0);
  CHECK(rig.kernel().queues() == 0);
  CHECK(run_trial(rig, kTrial) == 0);
}

TEST_CASE("amd: when all queues of an engine are leased the host drives the next plan") {
  Rig rig({});
  std::vector<std::unique_ptr<MpiTeam>> teams;
  std::vector<std::unique_ptr<TrialRun>> runs;
  std::string last;
  for (int i = 0; i < 9; ++i) {
    teams.push_back(std::make_unique<MpiTeam>(MPI_COMM_WORLD));
    runs.push_back(std::make_unique<TrialRun>(rig, *teams.back(), kTrial));
    last = runs.back()->plan().explain();
  }
  CHECK_MESSAGE(last.find("of the hsa provider") != std::string::npos, last);
  for (int i = 0; i < 9; ++i) runs[std::size_t(i)]->fill(i);
  for (const auto& run : runs) run->plan().start();
  for (const auto& run : runs) CHECK(finish(run->plan()).ok());
  for (int i = 0; i < 9; ++i) CHECK(runs[std::size_t(i)]->wrong(i) == 0);
}

TEST_CASE("amd: nothing is left when all is over") {
  Rig rig({});
  const std::size_t before = rig.kernel().objects();
  CHECK(run_trial(rig, kTrial) == 0);
  CHECK(run_trial(rig, {Operation::alltoall, 5000, true}) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(rig.rocr().allocations() == 0);
  // Rings, cursors and the doorbell page of pooled queues; mappings of memory that its owner freed.
  const std::size_t queues = rig.kernel().queues();
  CHECK(rig.kernel().objects() - before <= 2 * queues + 1 + rig.rocr().attached());
}

} // namespace
} // namespace ferry::test
