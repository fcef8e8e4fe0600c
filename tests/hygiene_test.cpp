// SPDX-License-Identifier: MIT
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>
#include <ferry/ferry.h>

#include "support/cases.hpp"
#include "support/machine.hpp"

using namespace ferry::test;

namespace {

// What grows while a library settles (lazy set-up, caches, malloc's arenas) is allowed once and
// does not scale with the number of rounds, which is in the hundreds.
constexpr std::size_t kMappingSlack = 16;
constexpr std::size_t kResidentSlackKib = 4096;

int cycles() {
  return world().size <= 2 && !small_grid() ? 1000 : 40;
}

void check_same(const Holdings& before, const Holdings& after) {
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.threads == before.threads);
  CHECK(after.mappings <= before.mappings + kMappingSlack);
  CHECK(after.resident_kib <= before.resident_kib + kResidentSlackKib);
}

template <class Cycle>
void check_flat(Cycle cycle) {
  for (int i = 0; i < 10; ++i) cycle(i);
  const Holdings before = holdings();
  for (int i = 0; i < cycles(); ++i) cycle(i);
  check_same(before, holdings());
}

} // namespace

TEST_SUITE_BEGIN("hygiene");

TEST_CASE("hygiene: cases 60, 105: communicators made, used and freed leave nothing") {
  check_flat([](int i) {
    const Comm comm = duplicate();
    std::uint64_t value = comm.rank() == 0 ? mix(static_cast<std::uint64_t>(i)) : 0;
    CHECK(ferry_bcast(&value, 1, MPI_UINT64_T, 0, comm.get()) == MPI_SUCCESS);
    CHECK(value == mix(static_cast<std::uint64_t>(i)));
  });
}

TEST_CASE("hygiene: case 105: handles made, started and freed leave nothing") {
  const Arena send(9000 * static_cast<std::size_t>(world().size));
  const Arena recv(9000 * static_cast<std::size_t>(world().size));
  check_flat([&](int i) {
    const Operation op = i % 2 == 0 ? Operation::alltoall : Operation::bcast;
    const std::size_t bytes = i % 3 == 0 ? 9000 : 64;
    const auto memory = static_cast<Memory>(i % kMemories);
    check_point(
        {op, bytes}, Form::persistent, memory, zoo()[0], static_cast<std::uint64_t>(i), 1, send,
        recv);
  });
}

TEST_CASE("hygiene: handles that are never started leave nothing") {
  const Comm& comm = zoo()[1];
  std::vector<int> data(static_cast<std::size_t>(comm.size()));
  check_flat([&](int /*i*/) {
    ferry_request request = FERRY_REQUEST_NULL;
    const int rc = ferry_alltoall_init(
        MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data.data(), 1, MPI_INT, comm.get(), MPI_INFO_NULL,
        &request);
    CHECK(rc == MPI_SUCCESS);
    CHECK(ferry_request_free(&request) == MPI_SUCCESS);
  });
}

TEST_CASE("hygiene: case 105: blocking and nonblocking calls of ever new sizes leave nothing") {
  const Arena send(20000 * static_cast<std::size_t>(world().size));
  const Arena recv(20000 * static_cast<std::size_t>(world().size));
  check_flat([&](int i) {
    const Form form = i % 2 == 0 ? Form::blocking : Form::nonblocking;
    const auto bytes = static_cast<std::size_t>(mix(static_cast<std::uint64_t>(i)) % 20000);
    check_point(
        {Operation::allgather, bytes}, form, Memory::heap, zoo()[0], static_cast<std::uint64_t>(i),
        1, send, recv);
  });
}

TEST_CASE("hygiene: memory of ferry_alloc goes back") {
  check_flat([](int i) {
    void* base = nullptr;
    CHECK(ferry_alloc(1 << 20, &base) == MPI_SUCCESS);
    poison(static_cast<unsigned char*>(base), 1 << 20, static_cast<std::uint64_t>(i));
    CHECK(ferry_free(base) == MPI_SUCCESS);
  });
}

// A segment has lost its name, or never had one, once all ranks have mapped it.
TEST_CASE("hygiene: case 95: no mapping of a file that still lies in /dev/shm") {
  const std::size_t before = holdings().named_segments;
  std::vector<Comm> comms;
  void* base = nullptr;
  CHECK(ferry_alloc(1 << 20, &base) == MPI_SUCCESS);
  for (int i = 0; i < 4; ++i) {
    comms.push_back(duplicate());
    int value = i;
    CHECK(ferry_bcast(&value, 1, MPI_INT, 0, comms.back().get()) == MPI_SUCCESS);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(holdings().named_segments == before);
  CHECK(ferry_free(base) == MPI_SUCCESS);
}

TEST_SUITE_END();

TEST_CASE("hygiene: row 69: a child made by fork is told that it cannot call") {
  char byte = 0;
  REQUIRE(ferry_bcast(&byte, 1, MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ferry_call call{};
    call.size = sizeof call;
    call.operation = FERRY_BCAST;
    call.form = FERRY_BLOCKING;
    call.flags = FERRY_NO_ERROR_HANDLER;
    call.recvbuf = &byte;
    call.recvcount = 1;
    call.recvtype = MPI_BYTE;
    call.comm = MPI_COMM_WORLD;
    const int code = ferry_collective(&call, nullptr);
    const bool told = std::strstr(ferry_error_text(), "forked") != nullptr;
    _exit(code == MPI_ERR_OTHER && told ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(ferry_bcast(&byte, 1, MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
}
