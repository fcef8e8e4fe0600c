// SPDX-License-Identifier: MIT
// Memory of hipMemCreate and hipMemMap on modelled GPUs: found, and mapped by the other processes.
#include <doctest/doctest.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "tests/amd/rig.hpp"

namespace ferry::test {
namespace {

using core::Operation;

constexpr auto kMapped = RigBuffer::Where::mapped;

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST_CASE("amd: memory of hipMemCreate goes to other processes by descriptor") {
  Rig rig({});
  for (const Operation operation :
       {Operation::alltoall, Operation::allgather, Operation::broadcast}) {
    std::string explained;
    CHECK(run_trial(rig, {operation, 30000, false, 0, 3, kMapped}, &explained) == 0);
    CHECK_MESSAGE(contains(explained, "of the kfd provider"), explained);
  }
  for (const std::string& fault : rig.kernel().faults()) FAIL_CHECK(fault);
}

TEST_CASE("amd: memory of hipMemCreate by kernels, and some ranks with that of hipMalloc") {
  RigSettings settings;
  settings.kernels = true;
  Rig rig(settings);
  const auto where = rig.rank() % 2 == 0 ? kMapped : RigBuffer::Where::device;
  CHECK(run_trial(rig, {Operation::alltoall, 300, false, 0, 3, where}) == 0);
  CHECK(run_trial(rig, {Operation::allgather, 40000, true, 0, 3, where}) == 0);
}

TEST_CASE("amd: memory of hipMemCreate that is freed and made again, and no descriptor is left") {
  Rig rig({});
  CHECK(run_trial(rig, {Operation::alltoall, 5000, false, 0, 1, kMapped}) == 0);
  const std::size_t before = open_files();
  for (int round = 0; round < 6; ++round) {
    CHECK(run_trial(rig, {Operation::alltoall, 5000, false, 0, 1, kMapped}) == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const auto others = static_cast<std::size_t>(rig.ranks() - 1);
  // The mappings of the last round remain: two buffers of each other rank, two files for each.
  CHECK(rig.rocr().mapped_ranges() <= 2 * others);
  CHECK(open_files() <= before + 2 * 2 * others);
}

TEST_CASE("amd: a runtime that cannot share memory of hipMemCreate: the host's serves") {
  RigSettings settings;
  settings.rocr.knows_vmem = false;
  Rig rig(settings);
  std::string explained;
  CHECK(run_trial(rig, {Operation::alltoall, 3000, false, 0, 2, kMapped}, &explained) == 0);
  CHECK_MESSAGE(contains(explained, "staging: "), explained);
  CHECK_MESSAGE(
      contains(explained, "rank 0: this ROCm runtime cannot share memory of hipMemCreate"),
      explained);
}

TEST_CASE("amd: interior pointers of memory of hipMemCreate are found with HIP") {
  Rig rig({});
  std::byte* const base = rig.rocr().hip_map(rig.node(), 50000);
  CHECK(rig.backend().owns(base + 49999));
  const auto found = rig.backend().devices().runtime.find(base + 5000);
  REQUIRE(found.has_value());
  CHECK(found->base == base);
  CHECK(found->vmem);
  rig.rocr().hip_free(base);
  amd::HipApi no_hip;
  const amd::Runtime runtime(rig.rocr().hsa(), no_hip);
  std::byte* const other = rig.rocr().hip_map(rig.node(), 50000);
  CHECK(runtime.find(other).has_value());
  CHECK_FALSE(runtime.find(other + 5000).has_value());
  rig.rocr().hip_free(other);
}

} // namespace
} // namespace ferry::test
