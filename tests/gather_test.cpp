// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "matrix/collective_grid.hpp"
#include "support/communicators.hpp"

using namespace ferry::test;

TEST_CASE("gather: grid, blocking") {
  run_collective(Coll::gather, Way::blocking);
}
TEST_CASE("gather: grid, nonblocking") {
  run_collective(Coll::gather, Way::nonblocking);
}
TEST_CASE("gather: grid, persistent") {
  run_collective(Coll::gather, Way::persistent);
}
TEST_CASE("gatherv: grid, blocking") {
  run_collective(Coll::gatherv, Way::blocking);
}
TEST_CASE("gatherv: grid, nonblocking") {
  run_collective(Coll::gatherv, Way::nonblocking);
}
TEST_CASE("gatherv: grid, persistent") {
  run_collective(Coll::gatherv, Way::persistent);
}

TEST_CASE("gather: what only the root has is not looked at elsewhere") {
  const Comm& comm = zoo()[0];
  for (int root = 0; root < comm.size(); ++root) {
    const bool at_root = comm.rank() == root;
    const int value = 100 * root + comm.rank();
    std::vector<int> all(static_cast<std::size_t>(comm.size()), -1);
    CHECK(
        ferry_gather(
            &value, 1, MPI_INT, at_root ? all.data() : nullptr, at_root ? 1 : -7,
            at_root ? MPI_INT : MPI_DATATYPE_NULL, root, comm.get()) == MPI_SUCCESS);
    std::vector<int> expected(all.size(), -1);
    if (at_root) std::iota(expected.begin(), expected.end(), 100 * root);
    CHECK(all == expected);
    // The arrays of the v form may be missing there.
    std::vector<MPI_Count> counts(all.size(), 1);
    std::vector<MPI_Aint> displs(all.size());
    std::iota(displs.rbegin(), displs.rend(), 0);
    CHECK(
        ferry_gatherv(
            &value, 1, MPI_INT, at_root ? all.data() : nullptr, at_root ? counts.data() : nullptr,
            at_root ? displs.data() : nullptr, MPI_INT, root, comm.get()) == MPI_SUCCESS);
    if (at_root) std::iota(expected.rbegin(), expected.rend(), 100 * root);
    CHECK(all == expected);
  }
}
