// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "matrix/collective_grid.hpp"

using namespace ferry::test;

TEST_CASE("reduce_scatter: grid, blocking") {
  run_collective(Coll::reduce_scatter, Way::blocking);
}
TEST_CASE("reduce_scatter: grid, nonblocking") {
  run_collective(Coll::reduce_scatter, Way::nonblocking);
}
TEST_CASE("reduce_scatter: grid, persistent") {
  run_collective(Coll::reduce_scatter, Way::persistent);
}
TEST_CASE("reduce_scatter_block: grid, blocking") {
  run_collective(Coll::reduce_scatter_block, Way::blocking);
}
TEST_CASE("reduce_scatter_block: grid, nonblocking") {
  run_collective(Coll::reduce_scatter_block, Way::nonblocking);
}
TEST_CASE("reduce_scatter_block: grid, persistent") {
  run_collective(Coll::reduce_scatter_block, Way::persistent);
}
