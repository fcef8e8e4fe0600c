// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "matrix/collective_grid.hpp"
#include "support/communicators.hpp"
#include "support/errors.hpp"
#include "support/pattern.hpp"

using namespace ferry::test;

TEST_CASE("allreduce: grid, blocking") {
  run_collective(Coll::allreduce, Way::blocking);
}
TEST_CASE("allreduce: grid, nonblocking") {
  run_collective(Coll::allreduce, Way::nonblocking);
}
TEST_CASE("allreduce: grid, persistent") {
  run_collective(Coll::allreduce, Way::persistent);
}

namespace {

double operand(int rank, std::size_t i) {
  const auto word = pattern_word(seed_of({3, rank, kEveryone}), i);
  return 1.0 / static_cast<double>(1 + word % 100003);
}

} // namespace

TEST_CASE("allreduce: sums of doubles are a0 + (a1 + (a2 + ...)) by rank, bit for bit") {
  if (ferry_is_off() || environment("MPIR_CVAR_NUM_CLIQUES", "") != "") return; // MPI's own order
  for (const std::size_t kind : {0U, 3U}) { // world and reversed
    const Comm& comm = zoo()[kind];
    for (const std::size_t count : {1U, 100U, 509U, 5000U, 40001U}) {
      // Between nodes larger ones have the order of the MPI below.
      if (count > 100 && environment("FERRY_NODES", "real") != "real") break;
      std::vector<double> own(count);
      std::vector<double> sum(count, -1);
      std::vector<double> expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        own[i] = operand(comm.rank(), i);
        expected[i] = operand(comm.size() - 1, i);
        for (int rank = comm.size() - 2; rank >= 0; --rank) {
          expected[i] = operand(rank, i) + expected[i];
        }
      }
      const auto n = static_cast<MPI_Count>(count);
      for (int run = 0; run < 2; ++run) {
        CHECK(
            ferry_allreduce(own.data(), sum.data(), n, MPI_DOUBLE, MPI_SUM, comm.get()) ==
            MPI_SUCCESS);
        CHECK(std::memcmp(sum.data(), expected.data(), count * sizeof(double)) == 0);
      }
      sum = own;
      CHECK(
          ferry_allreduce(MPI_IN_PLACE, sum.data(), n, MPI_DOUBLE, MPI_SUM, comm.get()) ==
          MPI_SUCCESS);
      CHECK(std::memcmp(sum.data(), expected.data(), count * sizeof(double)) == 0);
    }
  }
}

namespace {

void keep_first(void*, void*, int*, MPI_Datatype*) {}

} // namespace

TEST_CASE("allreduce: operations and types that are not Ferry's are errors") {
  const Comm& comm = zoo()[1];
  int send = 1;
  int recv = 0;
  MPI_Op own = MPI_OP_NULL;
  MPI_Op_create(keep_first, 1, &own);
  const auto reduce = [&](MPI_Datatype type, MPI_Op op) {
    return ferry_allreduce(&send, &recv, 1, type, op, comm.get());
  };
  for (const MPI_Op op : {own, MPI_OP_NULL, MPI_REPLACE, MPI_MINLOC}) {
    check_error(reduce(MPI_INT, op), MPI_ERR_ARG, "ferry_allreduce", comm, {"predefined"});
  }
  for (const MPI_Datatype type : {MPI_DATATYPE_NULL, MPI_BYTE, MPI_CHAR, MPI_2INT}) {
    check_error(reduce(type, MPI_SUM), MPI_ERR_ARG, "ferry_allreduce", comm, {"predefined"});
  }
  MPI_Op_free(&own);
  CHECK(reduce(MPI_INT, MPI_SUM) == MPI_SUCCESS);
  CHECK(recv == comm.size());
}
