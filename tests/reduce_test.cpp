// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "matrix/collective_grid.hpp"

using namespace ferry::test;

TEST_CASE("reduce: grid, blocking") {
  run_collective(Coll::reduce, Way::blocking);
}
TEST_CASE("reduce: grid, nonblocking") {
  run_collective(Coll::reduce, Way::nonblocking);
}
TEST_CASE("reduce: grid, persistent") {
  run_collective(Coll::reduce, Way::persistent);
}
