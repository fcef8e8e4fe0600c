// SPDX-License-Identifier: MIT
// The whole backend on modelled GPUs: each rank is a process with one of them.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/amd/rig.hpp"

namespace ferry::test {
namespace {

using core::Operation;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void every_collective(Rig& rig, const std::vector<std::size_t>& blocks, const char* path) {
  for (const std::size_t block : blocks) {
    for (const Trial& trial :
         {Trial{Operation::alltoall, block}, Trial{Operation::alltoall, block, true},
          Trial{Operation::allgather, block}, Trial{Operation::allgather, block, true},
          Trial{Operation::broadcast, block},
          Trial{Operation::broadcast, block, false, rig.ranks() - 1}}) {
      CAPTURE(block);
      const std::string operation = core::name_of(trial.operation);
      CAPTURE(operation);
      CAPTURE(trial.in_place);
      std::string explained;
      CHECK(run_trial(rig, trial, &explained) == 0);
      const bool as_meant = block == 0 || contains(explained, path); // nothing lies nowhere
      CHECK_MESSAGE(as_meant, explained);
    }
  }
  for (const std::string& fault : rig.kernel().faults()) FAIL_CHECK(fault);
}

const std::vector<std::size_t> kBlocks{0, 1, 7, 64, 4097, 70000};

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

TEST_CASE("amd: on MI250X, whose polls end early, the host drives the copies") {
  RigSettings settings;
  settings.model = "MI250X";
  Rig rig(settings);
  every_collective(rig, {1, 5000}, "of the hsa provider");
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
