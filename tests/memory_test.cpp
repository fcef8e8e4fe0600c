// SPDX-License-Identifier: MIT
#include <cstdint>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>
#include <ferry/ferry.h>
#include <sys/mman.h>

#include "support/cases.hpp"
#include "support/grid.hpp"

using namespace ferry::test;

namespace {

// One allgather of blocks of bytes from send to recv; "" when right.
std::string allgather_once(
    unsigned char* send, unsigned char* recv, std::size_t bytes, std::uint64_t iteration) {
  const auto all = bytes * static_cast<std::size_t>(world().size);
  poison(recv, all, iteration);
  fill(send, bytes, {iteration, world().rank, kEveryone});
  const auto count = static_cast<MPI_Count>(bytes);
  const int rc = ferry_allgather(send, count, MPI_BYTE, recv, count, MPI_BYTE, MPI_COMM_WORLD);
  if (rc != MPI_SUCCESS) return ferry_error_text();
  for (int j = 0; j < world().size; ++j) {
    const unsigned char* block = recv + static_cast<std::size_t>(j) * bytes;
    if (first_difference(block, bytes, {iteration, j, kEveryone})) return "wrong data";
  }
  return "";
}

} // namespace

TEST_SUITE_BEGIN("memory");

TEST_CASE("memory: ferry_alloc gives zeroed, page-aligned, writable memory") {
  for (const std::size_t bytes : {1, 4095, 4096, 4097, 1 << 20, 5 << 20}) {
    unsigned char* base = nullptr;
    CHECK(ferry_alloc(static_cast<MPI_Aint>(bytes), &base) == MPI_SUCCESS);
    CHECK(base != nullptr);
    if (base == nullptr) continue;
    CHECK(reinterpret_cast<std::uintptr_t>(base) % 4096 == 0);
    bool zeroed = true;
    for (std::size_t i = 0; i < bytes; ++i) zeroed = zeroed && base[i] == 0;
    CHECK(zeroed);
    fill(base, bytes, {1, 2, 3});
    CHECK(!first_difference(base, bytes, {1, 2, 3}));
    CHECK(ferry_free(base) == MPI_SUCCESS);
  }
}

TEST_CASE("memory: ferry_alloc of 0 bytes and of a negative size, ferry_free of NULL") {
  void* base = nullptr;
  CHECK(ferry_alloc(0, &base) == MPI_SUCCESS);
  CHECK(ferry_free(base) == MPI_SUCCESS);
  CHECK(ferry_free(nullptr) == MPI_SUCCESS);
  const int rc = ferry_alloc(-1, &base);
  int error_class = MPI_SUCCESS;
  MPI_Error_class(rc, &error_class);
  CHECK((error_class == MPI_ERR_ARG || error_class == MPI_ERR_SIZE));
}

TEST_CASE("memory: freed and allocated again at the same size between calls") {
  constexpr std::size_t kBytes = 300000;
  const auto all = static_cast<MPI_Aint>(kBytes) * world().size;
  for (std::uint64_t i = 0; i < 20; ++i) {
    unsigned char* send = nullptr;
    unsigned char* recv = nullptr;
    CHECK(ferry_alloc(static_cast<MPI_Aint>(kBytes), &send) == MPI_SUCCESS);
    CHECK(ferry_alloc(all, &recv) == MPI_SUCCESS);
    // Only some ranks allocate in the other order, so that addresses differ between ranks and
    // rounds.
    if ((i + static_cast<std::uint64_t>(world().rank)) % 2 == 0) {
      CHECK(ferry_free(send) == MPI_SUCCESS);
      CHECK(ferry_alloc(static_cast<MPI_Aint>(kBytes), &send) == MPI_SUCCESS);
    }
    note("round " + std::to_string(i));
    CHECK(allgather_once(send, recv, kBytes, i) == "");
    CHECK(ferry_free(send) == MPI_SUCCESS);
    CHECK(ferry_free(recv) == MPI_SUCCESS);
  }
}

TEST_CASE("memory: the same pages unmapped and mapped again by the user between calls") {
  constexpr std::size_t kBytes = 1 << 18;
  const std::size_t all = kBytes * static_cast<std::size_t>(world().size);
  void* const wanted = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(wanted != MAP_FAILED);
  std::vector<unsigned char> send(kBytes);
  for (std::uint64_t i = 0; i < 10; ++i) {
    void* got =
        mmap(wanted, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(got == wanted);
    CHECK(allgather_once(send.data(), static_cast<unsigned char*>(got), kBytes, i) == "");
  }
  munmap(wanted, all);
}

TEST_CASE("memory: send and receive blocks in one allocation, and two handles on one buffer") {
  constexpr std::size_t kBytes = 5000;
  const std::size_t all = kBytes * static_cast<std::size_t>(world().size);
  unsigned char* base = nullptr;
  CHECK(ferry_alloc(static_cast<MPI_Aint>(kBytes + 2 * all), &base) == MPI_SUCCESS);
  CHECK(allgather_once(base, base + kBytes, kBytes, 1) == "");
  CHECK(allgather_once(base + all, base, kBytes, 2) == "");
  ferry_request requests[2];
  unsigned char* const targets[] = {base + kBytes, base + kBytes + all};
  const auto count = static_cast<MPI_Count>(kBytes);
  for (int i = 0; i < 2; ++i) {
    const int rc = ferry_allgather_init(
        base, count, MPI_BYTE, targets[i], count, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL,
        &requests[i]);
    CHECK(rc == MPI_SUCCESS);
  }
  for (std::uint64_t start = 10; start < 13; ++start) {
    poison(targets[0], 2 * all, start);
    fill(base, kBytes, {start, world().rank, kEveryone});
    CHECK(ferry_startall(2, requests) == MPI_SUCCESS);
    CHECK(ferry_waitall(2, requests) == MPI_SUCCESS);
    for (const unsigned char* target : targets) {
      for (int j = 0; j < world().size; ++j) {
        const unsigned char* block = target + static_cast<std::size_t>(j) * kBytes;
        CHECK(!first_difference(block, kBytes, {start, j, kEveryone}));
      }
    }
  }
  for (ferry_request& request : requests) CHECK(ferry_request_free(&request) == MPI_SUCCESS);
  CHECK(ferry_free(base) == MPI_SUCCESS);
}

TEST_CASE("memory: only some ranks use memory of ferry_alloc") {
  constexpr std::size_t kBytes = 70000;
  const std::size_t all = kBytes * static_cast<std::size_t>(world().size);
  const Arena send(kBytes);
  const Arena recv(all);
  for (int chosen = 0; chosen < world().size; ++chosen) {
    const Memory memory = world().rank == chosen ? Memory::ferry : Memory::heap;
    const View from = send.view(memory, kBytes);
    const View to = recv.view(memory == Memory::heap ? Memory::ferry : Memory::heap, all);
    CHECK(allgather_once(from.data(), to.data(), kBytes, static_cast<std::uint64_t>(chosen)) == "");
    CHECK(from.canaries_intact());
    CHECK(to.canaries_intact());
  }
}

TEST_CASE("memory: a read-only send buffer is only read") {
  constexpr std::size_t kBytes = 16384;
  const std::size_t all = kBytes * static_cast<std::size_t>(world().size);
  void* page = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  auto* send = static_cast<unsigned char*>(page);
  for (int j = 0; j < world().size; ++j) {
    fill(send + static_cast<std::size_t>(j) * kBytes, kBytes, {5, world().rank, j});
  }
  CHECK(mprotect(page, all, PROT_READ) == 0);
  std::vector<unsigned char> recv(all);
  const auto count = static_cast<MPI_Count>(kBytes);
  CHECK(
      ferry_alltoall(send, count, MPI_BYTE, recv.data(), count, MPI_BYTE, MPI_COMM_WORLD) ==
      MPI_SUCCESS);
  for (int j = 0; j < world().size; ++j) {
    const unsigned char* block = recv.data() + static_cast<std::size_t>(j) * kBytes;
    CHECK(!first_difference(block, kBytes, {5, j, world().rank}));
  }
  munmap(page, all);
}

TEST_SUITE_END();
