// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <ferry/ferry.h>

#include "support/cases.hpp"
#include "support/grid.hpp"

using namespace ferry::test;

TEST_SUITE_BEGIN("alltoall");

TEST_CASE("alltoall: grid, blocking (cases 20, 23, 65)") {
  run_grid(Operation::alltoall, Form::blocking);
}
TEST_CASE("alltoall: grid, nonblocking (cases 20, 23, 65)") {
  run_grid(Operation::alltoall, Form::nonblocking);
}
TEST_CASE("alltoall: grid, persistent (cases 20, 23, 65)") {
  run_grid(Operation::alltoall, Form::persistent);
}

TEST_CASE("alltoall: cases 1, 7: in place in every form, counts 1, 2, 3, 1000") {
  in_place_counts(Operation::alltoall);
}
TEST_CASE(
    "alltoall: case 3: in place, blocks of 1..33 bytes, odd send counts ignored (cases 2, 9)") {
  in_place_small_blocks(Operation::alltoall);
}
TEST_CASE("alltoall: case 14: the type of a zero count is not looked at") {
  zero_count_of_null_type(Operation::alltoall);
}
TEST_CASE("alltoall: case 15: count of a zero-size type pairs with count 0") {
  zero_size_types(Operation::alltoall);
}
TEST_CASE("alltoall: case 16: zero counts with equal pointers and with NULL") {
  zero_counts_aliased(Operation::alltoall);
}
TEST_CASE("alltoall: case 39: blocks around the packet limit") {
  packet_limit(Operation::alltoall);
}
TEST_CASE("alltoall: cases 41, 42: 1, 2, 3 and 1000 starts, buffers filled after init") {
  many_starts(Operation::alltoall);
}
TEST_CASE("alltoall: case 51: counters cross 2^15 and 2^16") {
  soak(Operation::alltoall);
}

TEST_SUITE_END();
