// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <ferry/ferry.h>

#include "support/cases.hpp"
#include "support/grid.hpp"

using namespace ferry::test;

TEST_SUITE_BEGIN("allgather");

TEST_CASE("allgather: grid, blocking (cases 20, 23, 65)") {
  run_grid(Operation::allgather, Form::blocking);
}
TEST_CASE("allgather: grid, nonblocking (cases 20, 23, 65)") {
  run_grid(Operation::allgather, Form::nonblocking);
}
TEST_CASE("allgather: grid, persistent (cases 20, 23, 65)") {
  run_grid(Operation::allgather, Form::persistent);
}

TEST_CASE("allgather: case 7: in place in every form, counts 1, 2, 3, 1000") {
  in_place_counts(Operation::allgather);
}
TEST_CASE("allgather: cases 2, 9: in place, blocks of 1..33 bytes, odd send counts ignored") {
  in_place_small_blocks(Operation::allgather);
}
TEST_CASE("allgather: case 14: the type of a zero count is not looked at") {
  zero_count_of_null_type(Operation::allgather);
}
TEST_CASE("allgather: case 15: count of a zero-size type pairs with count 0") {
  zero_size_types(Operation::allgather);
}
TEST_CASE("allgather: case 16: zero counts with equal pointers and with NULL") {
  zero_counts_aliased(Operation::allgather);
}
TEST_CASE("allgather: case 39: blocks around the packet limit") {
  packet_limit(Operation::allgather);
}
TEST_CASE("allgather: cases 41, 42: 1, 2, 3 and 1000 starts, buffers filled after init") {
  many_starts(Operation::allgather);
}
TEST_CASE("allgather: case 51: counters cross 2^15 and 2^16") {
  soak(Operation::allgather);
}

TEST_SUITE_END();
