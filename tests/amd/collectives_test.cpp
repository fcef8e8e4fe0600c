// SPDX-License-Identifier: MIT
// The whole backend on modelled GPUs: each rank is a process with one of them.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/amd/rig.hpp"
#include "tests/support/world.hpp"

namespace ferry::test {
namespace {

using core::Operation;

// Nothing lies nowhere: an empty block may go any way.
void every_collective(Rig& rig, const std::vector<std::size_t>& blocks, const char* path) {
  run_every_collective(
      rig, blocks, [path](const Trial& trial) { return trial.block == 0 ? "" : path; });
}

const std::vector<std::size_t> kBlocks{0, 1, 7, 4097, 70000};

TEST_CASE("amd: every collective on queues of the kernel, MI300X") {
  Rig rig({});
  every_collective(rig, kBlocks, "sdma: ");
}

TEST_CASE("amd: every collective on queues of the kernel, MI355X") {
  RigSettings settings;
  settings.model = "MI355X";
  Rig rig(settings);
  every_collective(rig, {1, 5000}, "of the kfd provider");
}

TEST_CASE("amd: every collective on MI308X, whose odd engines are not there") {
  RigSettings settings;
  settings.model = "MI308X";
  Rig rig(settings);
  every_collective(rig, {1, 5000}, "of the kfd provider");
}

TEST_CASE("amd: every collective on partitions without engines for links") {
  RigSettings settings;
  settings.model = "CPX";
  Rig rig(settings);
  every_collective(rig, {1, 5000}, "of the kfd provider");
}

TEST_CASE("amd: every collective on halves of cards, and by engines that the runtime prefers") {
  RigSettings settings;
  settings.model = "DPX";
  {
    Rig rig(settings);
    every_collective(rig, {5000}, "of the kfd provider");
  }
  settings.options.path = amd::PathChoice::hsa;
  settings.rocr.preferred = 0x18;
  Rig rig(settings);
  std::string explained;
  CHECK(run_trial(rig, {Operation::alltoall, 5000}, &explained) == 0);
  if (rig.ranks() == 1) return;
  CHECK_MESSAGE(contains(explained, "the ROCm runtime prefers mask 0x18"), explained);
  for (const std::uint32_t mask : rig.rocr().masks_used()) {
    CHECK((mask == 0x08 || mask == 0x10 || mask == 0x01)); // 0: own copies
  }
}

TEST_CASE("amd: on MI250X, whose polls end early, the host drives the copies") {
  RigSettings settings;
  settings.model = "MI250X";
  Rig rig(settings);
  every_collective(rig, {1, 5000}, "of the hsa provider");
}

TEST_CASE("amd: engines that use every freedom of hardware, by several seeds") {
  for (const std::uint64_t seed : {101, 102, 103}) {
    if (seed > 101 && small_grid()) break;
    CAPTURE(seed);
    RigSettings settings;
    settings.seed = seed;
    settings.options.set_up.max_packet_bytes = 2048;
    Rig rig(settings);
    for (const bool in_place : {false, true}) {
      CHECK(run_trial(rig, {Operation::alltoall, 5000, in_place, 0, 6}) == 0);
    }
    CHECK(run_trial(rig, {Operation::broadcast, 5000, false, rig.ranks() - 1, 6}) == 0);
    for (const std::string& fault : rig.kernel().faults()) FAIL_CHECK(fault);
    CHECK(rig.kernel().freedom().parted_copies > 0);
    CHECK(rig.kernel().freedom().late_signals > 0);
  }
}

TEST_CASE("amd: every collective through memory of the host") {
  RigSettings settings;
  settings.options.path = amd::PathChoice::staging;
  settings.options.stage_chunk = 4096;
  Rig rig(settings);
  every_collective(rig, {0, 1, 4096, 4097, 20000}, "staging: ");
}

} // namespace
} // namespace ferry::test
