// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "matrix/collective_grid.hpp"

using namespace ferry::test;

TEST_CASE("allgatherv: grid, blocking") {
  run_collective(Coll::allgatherv, Way::blocking);
}
TEST_CASE("allgatherv: grid, nonblocking") {
  run_collective(Coll::allgatherv, Way::nonblocking);
}
TEST_CASE("allgatherv: grid, persistent") {
  run_collective(Coll::allgatherv, Way::persistent);
}
