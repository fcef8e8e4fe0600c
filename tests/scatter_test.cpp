// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "matrix/collective_grid.hpp"

using namespace ferry::test;

TEST_CASE("scatter: grid, blocking") {
  run_collective(Coll::scatter, Way::blocking);
}
TEST_CASE("scatter: grid, nonblocking") {
  run_collective(Coll::scatter, Way::nonblocking);
}
TEST_CASE("scatter: grid, persistent") {
  run_collective(Coll::scatter, Way::persistent);
}
TEST_CASE("scatterv: grid, blocking") {
  run_collective(Coll::scatterv, Way::blocking);
}
TEST_CASE("scatterv: grid, nonblocking") {
  run_collective(Coll::scatterv, Way::nonblocking);
}
TEST_CASE("scatterv: grid, persistent") {
  run_collective(Coll::scatterv, Way::persistent);
}
