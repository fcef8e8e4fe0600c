// SPDX-License-Identifier: MIT
// What goes wrong on modelled GPUs, and what becomes of it: all ranks take the same way out, and
// the reason is told.
#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "lib/amd/sdma_plan.hpp"
#include "tests/amd/rig.hpp"

namespace ferry::test {
namespace {

using core::Operation;

constexpr std::size_t kBlock = 40000;
const Trial kTrial{Operation::alltoall, kBlock, false, 0, 2};

// Runs one collective and looks for both parts in what is told about its path.
void expect(Rig& rig, const char* first, const char* second, const Trial& trial = kTrial) {
  std::string explained;
  CHECK(run_trial(rig, trial, &explained) == 0);
  const bool told =
      explained.find(first) != std::string::npos && explained.find(second) != std::string::npos;
  CHECK_MESSAGE(told, explained);
  for (const std::string& fault : rig.kernel().faults()) FAIL_CHECK(fault);
}

// Engines of rank 0's GPU that lead to others.
std::set<NodeEngine> engines_of(int node, std::uint32_t from, std::uint32_t end) {
  std::set<NodeEngine> engines;
  for (std::uint32_t engine = from; engine < end; ++engine) engines.insert({node, engine});
  return engines;
}

TEST_CASE("amd: an engine that hangs is found by the trial, and others are used") {
  RigSettings settings;
  settings.model = "MI308X"; // every link may use several engines
  settings.faults.hanging = engines_of(kCpuNodes, 2, 4);
  Rig rig(settings);
  expect(rig, "of the kfd provider", "sdma: ");
  const bool banned = rig.backend().devices().kfd.pool->banned(rig.node()).contains(2);
  CHECK(banned == (rig.rank() == 0 && rig.ranks() > 1));
}

TEST_CASE("amd: an engine that hangs on long copies only is found") {
  RigSettings settings;
  settings.model = "MI308X";
  settings.faults.hanging_above = engines_of(kCpuNodes, 4, 5);
  Rig rig(settings);
  expect(rig, "of the kfd provider", "sdma: ");
}

TEST_CASE("amd: an engine that leaves out the last byte is found by the receiver") {
  RigSettings settings;
  settings.model = "MI308X";
  settings.faults.cutting = engines_of(kCpuNodes, 2, 8);
  Rig rig(settings);
  expect(rig, "sdma: ", "provider");
  const bool banned = rig.backend().devices().kfd.pool->banned(rig.node()).empty();
  CHECK(banned == (rig.rank() != 0 || rig.ranks() == 1));
}

TEST_CASE("amd: engines without queues on one GPU: all ranks let the host drive the copies") {
  RigSettings settings;
  settings.faults.full = engines_of(kCpuNodes, 0, 16);
  Rig rig(settings);
  expect(rig, "of the hsa provider", "not kfd: rank 0: no queue is left on GPU");
}

TEST_CASE("amd: a driver that cannot be opened: the host drives the copies") {
  RigSettings settings;
  settings.faults.open_error = EACCES;
  Rig rig(settings);
  expect(rig, "of the hsa provider", "refuses to open /dev/kfd: Permission denied");
}

TEST_CASE("amd: before interface 1.17 the driver picks the engines") {
  RigSettings settings;
  settings.faults.minor = 16;
  Rig rig(settings);
  expect(rig, "of the kfd provider", "sdma: ");
}

TEST_CASE("amd: an older runtime that does not let engines be chosen") {
  RigSettings settings;
  settings.options.path = amd::PathChoice::hsa;
  settings.rocr.knows_engines = false;
  Rig rig(settings);
  expect(rig, "of the hsa provider", "sdma: ");
}

TEST_CASE("amd: copies of the runtime that fail end the trial, then memory of the host serves") {
  RigSettings settings;
  settings.faults.open_error = ENOENT;
  settings.rocr.failing = engines_of(kCpuNodes, 0, 16);
  Rig rig(settings);
  expect(rig, "staging: ", "not hsa: rank 0: ");
}

TEST_CASE("amd: the address space of a GPU that another library holds and does not share") {
  RigSettings settings;
  settings.faults.no_shared_descriptor = true;
  Rig rig(settings);
  expect(rig, "of the hsa provider", "install libdrm_amdgpu.so.1");
}

TEST_CASE("amd: every call of the driver may be refused, and the next path serves") {
  for (const unsigned long number : {0x02ul, 0x14ul, 0x15ul}) {
    CAPTURE(number);
    RigSettings settings;
    settings.faults.errors = {{number, EINVAL}};
    Rig rig(settings);
    expect(rig, "of the hsa provider", "not kfd: rank 0: the AMD driver refuses");
  }
}

TEST_CASE("amd: handles that cannot be mapped: memory of the host serves") {
  RigSettings settings;
  settings.rocr.no_attach = true;
  Rig rig(settings);
  const bool alone = rig.ranks() == 1;
  expect(
      rig, alone ? "sdma: " : "staging: ",
      alone ? "sdma: " : "cannot map an allocation of another process");
}

TEST_CASE("amd: a GPU that the runtime hides is named, with what cures it") {
  RigSettings settings;
  settings.options.blinds.rocr_visible = "1";
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > 1 && rank == 0) settings.rocr.hidden = {kCpuNodes + 1};
  Rig rig(settings);
  if (ranks == 1) return expect(rig, "sdma: ", "sdma: ");
  expect(
      rig, "staging: ",
      "rank 0: ROCR_VISIBLE_DEVICES=1 hides GPU 0000:65:00.0 of rank 1: leave it unset");
}

TEST_CASE("amd: one rank has its blocks in memory of the host") {
  Rig rig({});
  Trial trial = kTrial;
  if (rig.rank() == rig.ranks() - 1) trial.where = RigBuffer::Where::host;
  expect(rig, "staging: ", "are not all on one GPU", trial);
}

TEST_CASE("amd: all ranks on one GPU") {
  RigSettings settings;
  settings.one_gpu = true;
  Rig rig(settings);
  // Ranks that share a GPU share the few queues of its engine for own copies.
  expect(rig, "sdma: ", rig.ranks() > 2 ? "of the hsa provider" : "of the kfd provider");
}

TEST_CASE("amd: a path that is demanded and fails is an error on every rank") {
  RigSettings settings;
  settings.options.path = amd::PathChoice::kfd;
  settings.faults.open_error = ENOENT;
  Rig rig(settings);
  std::string cause;
  try {
    (void)run_trial(rig, kTrial);
  } catch (const core::Failure& failure) {
    cause = failure.status().cause;
  }
  CHECK(cause.find("the path that FERRY_AMD_PATH demands fails; ") == 0);
  const char* const reason =
      "not kfd: rank 0: the AMD driver refuses to open /dev/kfd: No such file";
  CHECK_MESSAGE(cause.find(reason) != std::string::npos, cause);
}

TEST_CASE("amd: ranks that make different calls all get an error") {
  Rig rig({});
  Trial trial = kTrial;
  if (rig.rank() == rig.ranks() - 1) trial.block += 1;
  if (rig.ranks() == 1) return;
  CHECK_THROWS_AS((void)run_trial(rig, trial), core::Failure);
}

TEST_CASE(
    "amd: an engine that stops later is named with its packet, and nobody else waits for ever") {
  Rig rig({});
  MpiTeam team = rig.fresh_team();
  TrialRun run(rig, team, kTrial);
  run.fill(1);
  rig.kernel().pause_engines(true);
  run.plan().start();
  (void)run.plan().progress();
  const std::string missing = run.plan().missing();
  CHECK_MESSAGE(missing.find("bytes of packets and stands at ") != std::string::npos, missing);
  CHECK_MESSAGE(missing.find("of node ") != std::string::npos, missing);
  rig.kernel().pause_engines(false);
  CHECK(finish(run.plan()).ok());
  CHECK(run.wrong(1) == 0);
}

// The text of rank 0, on all ranks.
std::string text_of_first(const std::string& mine) {
  char text[1024] = "";
  mine.copy(text, sizeof text - 1);
  MPI_Bcast(text, sizeof text, MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

TEST_CASE("amd: an engine that faults in a collective: all ranks get its error, its queue goes") {
  RigSettings settings;
  settings.in_order = true;
  Rig rig(settings);
  if (rig.ranks() == 1) return;
  {
    MpiTeam team = rig.fresh_team();
    TrialRun run(rig, team, kTrial);
    run.fill(1);
    run.plan().start();
    CHECK(finish(run.plan()).ok());
    CHECK(run.wrong(1) == 0);
    if (rig.rank() == 0) rig.rocr().lose_mappings(32768); // not the signals
    MPI_Barrier(MPI_COMM_WORLD);
    run.fill(2);
    run.plan().start();
    const core::Status status = finish(run.plan());
    CHECK(status.kind == core::ErrorKind::bad_packet);
    CHECK(status.cause == text_of_first(status.cause));
    const std::string text = status.cause + "; " + status.remedy;
    for (const char* part :
         {"rank 0: persistent alltoall on a team of the test, start 2: ",
          "the GPU reports a fault at 0x", "; queue on engine ", " of node 2 to rank ",
          " stands at COPY_LINEAR ", "; keep buffers allocated"}) {
      CHECK_MESSAGE(contains(text, part), text);
    }
    CHECK(rig.rocr().unclaimed() == 0);
    run.plan().start(); // is in vain, and does not wait
    CHECK_FALSE(finish(run.plan()).ok());
    MPI_Barrier(MPI_COMM_WORLD);
  }
  CHECK(rig.kernel().faults().empty() == (rig.rank() != 0));
  CHECK(rig.backend().devices().kfd.pool->idle() == 0);
  CHECK(rig.kernel().queues() == 0);
  CHECK(run_trial(rig, kTrial) == 0);
}

TEST_CASE("amd: copies that the runtime fails in a collective are an error on all ranks") {
  RigSettings settings;
  settings.options.path = amd::PathChoice::hsa;
  Rig rig(settings);
  if (rig.ranks() == 1) return;
  MpiTeam team = rig.fresh_team();
  TrialRun run(rig, team, kTrial);
  run.fill(1);
  run.plan().start();
  CHECK(finish(run.plan()).ok());
  if (rig.rank() == 0) rig.rocr().settings().failing = engines_of(kCpuNodes, 0, 16);
  MPI_Barrier(MPI_COMM_WORLD);
  run.fill(2);
  run.plan().start();
  const core::Status status = finish(run.plan());
  CHECK(status.cause == text_of_first(status.cause));
  for (const char* part :
       {"rank 0: persistent alltoall on a team of the test, to rank ", ": queue on engine ",
        "a copy of the ROCm runtime failed"}) {
    CHECK_MESSAGE(contains(status.cause, part), status.cause);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE(
    "amd: a fault of the program's own, when no copies are under way, is left to the runtime") {
  RigSettings settings;
  settings.in_order = true;
  Rig rig(settings);
  MpiTeam team = rig.fresh_team();
  TrialRun run(rig, team, kTrial);
  run.fill(1);
  run.plan().start();
  CHECK(finish(run.plan()).ok());
  rig.rocr().report(rig.node(), 0x1000);
  CHECK(rig.rocr().unclaimed() == 1);
  MPI_Barrier(MPI_COMM_WORLD);
}

} // namespace
} // namespace ferry::test
