// SPDX-License-Identifier: MIT
// Programs that call MPI by its plain names: every collective in every form, with random types,
// lengths and communicators. TEST_BELOW names the collectives that the MPI below does (all: without
// the preload library); what it does wrong is then left out. A failure names the seed and the
// number of the configuration: TEST_SEED=.. TEST_FIRST=.. TEST_CONFIGURATIONS=1 repeats it.
#include <cstdio>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "../support/world.hpp"
#include "configuration.hpp"
#include "run.hpp"

namespace ferry::test {
namespace {

constexpr int kStarts = 3;

void finish(Dice& dice, MPI_Request* request) {
  int done = 0;
  MPI_Status status;
  switch (dice.between(1, 3)) {
    case 1:
      CHECK(MPI_Wait(request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
      break;
    case 2:
      CHECK(MPI_Waitall(1, request, &status) == MPI_SUCCESS);
      break;
    default:
      while (done == 0) REQUIRE(MPI_Test(request, &done, &status) == MPI_SUCCESS);
      break;
  }
}

// One configuration on one rank; returns how often it was run.
int run_one(const Configuration& c, const Comm& comm, Dice& dice) {
  const std::unique_ptr<Operation> operation = make_operation(c, comm);
  const Way way = c.form.way;
  MPI_Request request = MPI_REQUEST_NULL;
  const int starts = way == Way::persistent ? kStarts : 1;
  if (way == Way::persistent) {
    // What lies in the buffers now is not what a start moves.
    operation->prepare(c.seed);
    REQUIRE(make_call(operation->call(), &request) == MPI_SUCCESS);
    if (dice.one_in(2)) operation->free_types();
  }
  for (int start = 0; start < starts; ++start) {
    operation->prepare(c.seed + static_cast<std::uint64_t>(start) + 1);
    if (way == Way::persistent) {
      REQUIRE(MPI_Start(&request) == MPI_SUCCESS);
    } else {
      REQUIRE(make_call(operation->call(), &request) == MPI_SUCCESS);
    }
    if (way == Way::nonblocking && dice.one_in(2)) operation->free_types();
    if (way != Way::blocking) finish(dice, &request);
    const std::string problem = operation->problem();
    CHECK_MESSAGE(problem == "", "start ", start + 1, ": ", problem);
  }
  if (way == Way::persistent) CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
  CHECK(request == MPI_REQUEST_NULL);
  return starts;
}

} // namespace

TEST_CASE("matrix: random configurations") {
  const std::uint64_t seed = first_seed(1);
  const std::uint64_t first = number("TEST_FIRST", 0);
  const std::uint64_t count = number("TEST_CONFIGURATIONS", 500);
  const bool told = count == 1 || environment("TEST_TRACE", "") == "1";
  std::uint64_t run = 0;
  std::uint64_t not_run = 0;
  std::uint64_t starts = 0;
  for (std::uint64_t index = first; index < first + count; ++index) {
    const Configuration c = configuration(seed, index);
    const Comm& comm = zoo()[c.comm];
    if (!wanted(c.form.coll)) continue;
    if (left_out(c, comm)) {
      ++not_run;
      continue;
    }
    ++run;
    const std::string text = "seed " + std::to_string(seed) + ", configuration " +
                             std::to_string(index) + ": " + text_of(c, comm);
    note(text);
    INFO(text);
    if (told && world().rank == 0) std::fprintf(stderr, "%s\n", text.c_str());
    if (!comm.member()) continue;
    Dice dice(c.seed ^ static_cast<std::uint64_t>(world().rank + 77));
    starts += static_cast<std::uint64_t>(run_one(c, comm, dice));
  }
  CHECK(run + not_run > 0);
  if (world().rank != 0) return;
  std::printf(
      "matrix of %d ranks, seed %llu: %llu configurations from %llu on, %llu starts of rank 0, "
      "%llu "
      "left out\n",
      world().size, static_cast<unsigned long long>(seed), static_cast<unsigned long long>(run),
      static_cast<unsigned long long>(first), static_cast<unsigned long long>(starts),
      static_cast<unsigned long long>(not_run));
}

} // namespace ferry::test
