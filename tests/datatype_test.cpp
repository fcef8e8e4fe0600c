// SPDX-License-Identifier: MIT
// The collectives of equal blocks, with types that have gaps and differ from rank to rank.
#include <doctest/doctest.h>

#include "matrix/collective_grid.hpp"

using namespace ferry::test;

TEST_CASE("alltoall: grid, blocking") {
  run_collective(Coll::alltoall, Way::blocking);
}
TEST_CASE("alltoall: grid, nonblocking") {
  run_collective(Coll::alltoall, Way::nonblocking);
}
TEST_CASE("alltoall: grid, persistent") {
  run_collective(Coll::alltoall, Way::persistent);
}
TEST_CASE("allgather: grid, blocking") {
  run_collective(Coll::allgather, Way::blocking);
}
TEST_CASE("allgather: grid, nonblocking") {
  run_collective(Coll::allgather, Way::nonblocking);
}
TEST_CASE("allgather: grid, persistent") {
  run_collective(Coll::allgather, Way::persistent);
}
TEST_CASE("bcast: grid, blocking") {
  run_collective(Coll::bcast, Way::blocking);
}
TEST_CASE("bcast: grid, nonblocking") {
  run_collective(Coll::bcast, Way::nonblocking);
}
TEST_CASE("bcast: grid, persistent") {
  run_collective(Coll::bcast, Way::persistent);
}
