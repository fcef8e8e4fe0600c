// SPDX-License-Identifier: MIT
// Collectives that kernels carry out, on modelled GPUs: the kernels run as code of the host.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "lib/amd/kernels/kernels.hpp"
#include "lib/config/config.hpp"
#include "tests/amd/fake/modules.hpp"
#include "tests/amd/rig.hpp"

namespace ferry::test {
namespace {

using core::Operation;

// Without a device compiler there are no kernels; then the plan has to say so.
const char* path_of(const Trial& trial) {
  if (amd::code_objects().count == 0) return "without a compiler for AMD GPUs";
  const bool same_block = trial.in_place && trial.operation == Operation::alltoall;
  return same_block && trial.block > 32768 ? "only from one buffer to another" : "kernels: ferry_";
}

void every_collective(Rig& rig, const std::vector<std::size_t>& blocks) {
  run_every_collective(rig, blocks, path_of);
}

RigSettings with_kernels(const char* model) {
  RigSettings settings;
  settings.model = model;
  settings.kernels = true;
  return settings;
}

TEST_CASE("amd: every collective by kernels, MI300X") {
  Rig rig(with_kernels("MI300X"));
  every_collective(rig, {1, 7, 64, 4097, 33001, 60000});
}

TEST_CASE("amd: every collective by kernels, MI250X and MI355X") {
  for (const char* model : {"MI250X", "MI355X"}) {
    Rig rig(with_kernels(model));
    every_collective(rig, {5, 5000});
  }
}

TEST_CASE("amd: long blocks go by copy engines, and by kernels where engines do not work") {
  Rig rig(with_kernels("MI300X"));
  std::string explained;
  CHECK(run_trial(rig, {Operation::allgather, 70000}, &explained) == 0);
  CHECK_MESSAGE(contains(explained, "sdma: "), explained);
  rig.backend().options().path = amd::PathChoice::kernels;
  if (amd::code_objects().count == 0) return;
  CHECK(run_trial(rig, {Operation::allgather, 70000}, &explained) == 0);
  CHECK_MESSAGE(contains(explained, "kernels: ferry_wide"), explained);
}

TEST_CASE("amd: a broadcast by kernels: words to 2 KiB, then whole blocks") {
  if (amd::code_objects().count == 0) return;
  Rig rig(with_kernels("MI300X"));
  std::string explained;
  CHECK(run_trial(rig, {Operation::broadcast, 2048}, &explained) == 0);
  CHECK_MESSAGE(contains(explained, "kernels: ferry_low_latency"), explained);
  CHECK(run_trial(rig, {Operation::broadcast, 2049}, &explained) == 0);
  CHECK_MESSAGE(contains(explained, "kernels: ferry_wide"), explained);
}

TEST_CASE("amd: kernels without HIP are refused with a reason") {
  Rig rig({});
  std::string explained;
  CHECK(run_trial(rig, {Operation::alltoall, 64}, &explained) == 0);
  CHECK_MESSAGE(contains(explained, "this program does not use HIP"), explained);
}

// On rank 0 alone, as long as this lives.
class FaultyKernels {
 public:
  FaultyKernels(const Rig& rig, KernelFault fault) {
    if (rig.rank() == 0) set_kernel_fault(fault);
  }
  FaultyKernels(const FaultyKernels&) = delete;
  FaultyKernels& operator=(const FaultyKernels&) = delete;
  ~FaultyKernels() { set_kernel_fault(KernelFault::none); }
};

void expect_copy_engines(KernelFault fault, std::size_t block, const char* why) {
  if (amd::code_objects().count == 0) return;
  Rig rig(with_kernels("MI300X"));
  if (rig.ranks() == 1) return;
  const FaultyKernels faulty(rig, fault);
  for (int round = 0; round < 2; ++round) {
    std::string explained;
    CHECK(run_trial(rig, {Operation::allgather, block}, &explained) == 0);
    CHECK_MESSAGE(contains(explained, "sdma: "), explained);
    CHECK_MESSAGE(contains(explained, "; not kernels: "), explained);
    CHECK_MESSAGE(contains(explained, why), explained);
  }
}

TEST_CASE("amd: a kernel that hangs is found by its trial, and copy engines serve all ranks") {
  expect_copy_engines(
      KernelFault::hangs, 64, "the trial of ferry_low_latency: rank 0: it does not come to an end");
}

TEST_CASE("amd: a kernel that brings wrong bytes is found by its trial") {
  expect_copy_engines(
      KernelFault::wrong_byte, 64, "the trial of ferry_low_latency: rank 0: it brings wrong bytes");
  expect_copy_engines(
      KernelFault::wrong_byte, 40000, "the trial of ferry_wide: rank 0: it brings wrong bytes");
}

TEST_CASE("amd: a kernel is tried once") {
  if (amd::code_objects().count == 0) return;
  Rig rig(with_kernels("MI300X"));
  for (const std::size_t launched : {4, 3, 3}) {
    const std::size_t before = kernel_launches();
    CHECK(run_trial(rig, {Operation::alltoall, 100}) == 0);
    CHECK(kernel_launches() - before == launched);
  }
}

TEST_CASE("amd: a captured kernel is replayed with changing data (rows 41, 42)") {
  if (amd::code_objects().count == 0) return;
  Rig rig(with_kernels("MI300X"));
  for (const std::size_t block : {std::size_t{40}, std::size_t{50000}}) {
    MpiTeam team = rig.fresh_team();
    TrialRun run(rig, team, {Operation::alltoall, block});
    FakeStream stream;
    stream.begin_capture();
    run.plan().start_on_stream(&stream);
    stream.end_capture();
    for (int iteration = 1; iteration <= 20; ++iteration) {
      run.fill(iteration);
      stream.replay();
      stream.synchronize();
      CHECK(run.wrong(iteration) == 0);
    }
    CHECK(run.plan().status().ok());
  }
}

TEST_CASE("amd: a plan on kernels ends although a peer never comes") {
  if (amd::code_objects().count == 0) return;
  Rig rig(with_kernels("MI300X"));
  MpiTeam team = rig.fresh_team();
  for (const std::size_t block : {std::size_t{40}, std::size_t{50000}}) {
    TrialRun run(rig, team, {Operation::alltoall, block});
    run.fill(1);
    if (rig.rank() != 0) continue;
    run.plan().start();
    if (core::config().timeout == 0) {
      CHECK(run.plan().progress() == core::Poll::pending); // and the plan is destroyed
      CHECK(contains(run.plan().missing(), "start 1: the kernel ferry_"));
      continue;
    }
    const core::Status status = finish(run.plan());
    CHECK(status.kind == core::ErrorKind::timeout);
    CHECK_MESSAGE(
        contains(status.cause, "start 1: the kernel has nothing from rank "), status.cause);
  }
}

} // namespace
} // namespace ferry::test
