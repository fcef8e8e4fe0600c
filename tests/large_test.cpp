// SPDX-License-Identifier: MIT
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <ferry/ferry.h>
#include <sys/mman.h>

#include "support/cases.hpp"

using namespace ferry::test;

namespace {

constexpr std::size_t kBlock = (std::size_t{1} << 31) + 5;

// MemAvailable of this machine in bytes, the smallest that any rank saw.
std::size_t memory_available() {
  std::ifstream info("/proc/meminfo");
  std::string word;
  unsigned long long kib = 0;
  for (int i = 0; i < 1000 && info >> word; ++i) {
    if (word == "MemAvailable:") info >> kib;
  }
  MPI_Allreduce(MPI_IN_PLACE, &kib, 1, MPI_UNSIGNED_LONG_LONG, MPI_MIN, MPI_COMM_WORLD);
  return static_cast<std::size_t>(kib) * 1024;
}

} // namespace

// Named with "large" so that the ordinary runs can leave it out: it needs 4.3 GB of memory.
TEST_CASE("large: cases 33, 35: one broadcast block of 2^31 + 5 bytes") {
  constexpr std::size_t kNeeded = std::size_t{8} << 30;
  if (memory_available() < kNeeded) {
    if (world().rank == 0) std::printf("skipped: less than 8 GiB of memory available\n");
    return;
  }
  CHECK(world().size == 2);
  // Set-up first: filling 2 GiB would make rank 0 late for it, which is case 108.
  int small = 0;
  CHECK(ferry_bcast(&small, 1, MPI_INT, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
  const std::size_t bytes = kBlock + 2 * kGuard;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(base != MAP_FAILED);
  const View view(static_cast<unsigned char*>(base) + kGuard, kBlock);
  if (world().rank == 0) {
    fill(view.data(), kBlock, {1, 0, kEveryone});
  } else {
    poison(view.data(), kBlock, 1);
  }
  const auto count = static_cast<MPI_Count>(kBlock);
  const int rc = ferry_bcast(view.data(), count, MPI_BYTE, 0, MPI_COMM_WORLD);
  CHECK_MESSAGE(rc == MPI_SUCCESS, ferry_error_text());
  CHECK(!first_difference(view.data(), kBlock, {1, 0, kEveryone}));
  CHECK(view.canaries_intact());
  munmap(base, bytes);
}

TEST_CASE("large: case 33: an allgather in place whose blocks together pass 2^31 bytes") {
  constexpr std::size_t kNeeded = std::size_t{8} << 30;
  constexpr std::size_t kPart = (std::size_t{1} << 30) + 1;
  if (memory_available() < kNeeded) {
    if (world().rank == 0) std::printf("skipped: less than 8 GiB of memory available\n");
    return;
  }
  CHECK(world().size == 2);
  const std::size_t bytes = 2 * kPart + 2 * kGuard;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(base != MAP_FAILED);
  const View view(static_cast<unsigned char*>(base) + kGuard, 2 * kPart);
  const auto block = [&](int rank) { return view.data() + static_cast<std::size_t>(rank) * kPart; };
  fill(block(world().rank), kPart, {2, world().rank, kEveryone});
  poison(block(1 - world().rank), kPart, 2);
  const int rc = ferry_allgather(
      MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, view.data(), static_cast<MPI_Count>(kPart), MPI_BYTE,
      MPI_COMM_WORLD);
  CHECK_MESSAGE(rc == MPI_SUCCESS, ferry_error_text());
  for (int from = 0; from < 2; ++from) {
    CHECK(!first_difference(block(from), kPart, {2, from, kEveryone}));
  }
  CHECK(view.canaries_intact());
  munmap(base, bytes);
}
