// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <ferry/ferry.h>

#include "support/cases.hpp"
#include "support/grid.hpp"

using namespace ferry::test;

TEST_SUITE_BEGIN("bcast");

TEST_CASE("bcast: grid, blocking (cases 20, 23, 65)") {
  run_grid(Operation::bcast, Form::blocking);
}
TEST_CASE("bcast: grid, nonblocking (cases 20, 23, 65)") {
  run_grid(Operation::bcast, Form::nonblocking);
}
TEST_CASE("bcast: grid, persistent (cases 20, 23, 65)") {
  run_grid(Operation::bcast, Form::persistent);
}

TEST_CASE("bcast: each root in every form, sizes of each path") {
  constexpr std::size_t kSizes[] = {3, 700, 5000, 70000, 300001};
  const Arena send(0);
  const Arena recv(300001);
  for (const Form form : {Form::blocking, Form::nonblocking}) {
    unsigned kind = 0;
    for (const Comm& comm : zoo()) {
      // Ranks see communicators of different sizes: n must not depend on what this rank has run.
      unsigned n = 100 * ++kind + (form == Form::blocking ? 0 : 3);
      for (int root = 0; comm.member() && root < comm.size(); ++root, ++n) {
        Shape shape = grid_shape(Operation::bcast, kSizes[n % 5], false, n);
        shape.root = root;
        check_point(
            shape, form, static_cast<Memory>(n % kMemories), comm, n * 100ULL, 3, send, recv);
      }
    }
  }
}

TEST_CASE("bcast: case 43: persistent, each root, four starts in each range of sizes") {
  const Arena send(0);
  const Arena recv(300001);
  const Comm& comm = zoo()[0];
  unsigned n = 0;
  for (const std::size_t bytes : {8, 700, 5000, 70000, 300001}) {
    for (int root = 0; root < comm.size(); ++root, ++n) {
      Shape shape = grid_shape(Operation::bcast, bytes, false, n);
      shape.root = root;
      const auto memory = static_cast<Memory>(n % kMemories);
      check_point(shape, Form::persistent, memory, comm, n * 100ULL, 4, send, recv);
    }
  }
}

TEST_CASE("bcast: roots change from call to call on one communicator") {
  const Arena send(0);
  const Arena recv(64);
  const Comm& comm = zoo()[1];
  const int rounds = small_grid() ? 100 : 1000;
  for (int i = 0; i < rounds; ++i) {
    Shape shape{Operation::bcast, static_cast<std::size_t>(i % 65)};
    shape.root =
        static_cast<int>(mix(static_cast<std::uint64_t>(i)) % static_cast<unsigned>(comm.size()));
    check_point(
        shape, Form::blocking, Memory::heap, comm, static_cast<std::uint64_t>(i), 1, send, recv);
  }
}

TEST_CASE("bcast: case 29: a derived type over a large buffer") {
  const Arena send(0);
  const Arena recv(6 * kKi * kKi);
  for (const Spelling how : {Spelling::plain, Spelling::whole, Spelling::pairs}) {
    Shape shape{Operation::bcast, 6 * kKi * kKi};
    shape.width = 8;
    shape.send_as = how;
    shape.recv_as = Spelling::whole;
    shape.root = world().size - 1;
    check_point(shape, Form::blocking, Memory::heap, zoo()[0], 7, 3, send, recv);
  }
}

TEST_CASE("bcast: case 14: the type of a zero count is not looked at") {
  zero_count_of_null_type(Operation::bcast);
}
TEST_CASE("bcast: case 15: count of a zero-size type pairs with count 0") {
  zero_size_types(Operation::bcast);
}
TEST_CASE("bcast: case 39: blocks around the packet limit") {
  packet_limit(Operation::bcast);
}
TEST_CASE("bcast: cases 41, 42: 1, 2, 3 and 1000 starts, buffers filled after init") {
  many_starts(Operation::bcast);
}
TEST_CASE("bcast: case 51: counters cross 2^15 and 2^16") {
  soak(Operation::bcast);
}

TEST_SUITE_END();
