// SPDX-License-Identifier: MIT
// Cases that are the same for several collectives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <ferry/ferry.h>

#include "grid.hpp"

namespace ferry::test {

inline constexpr Form kForms[] = {Form::blocking, Form::nonblocking, Form::persistent};

inline void check_point(
    const Shape& shape, Form form, Memory memory, const Comm& comm, std::uint64_t iteration,
    int runs, const Arena& send, const Arena& recv) {
  note(describe(shape, form, memory, comm));
  const Exchange exchange(shape, comm, memory, send, recv);
  const std::string problem = run_point(exchange, form, iteration, runs);
  CHECK_MESSAGE(problem == "", describe(shape, form, memory, comm), ": ", problem);
}

inline void in_place_counts(Operation op) {
  const auto size = static_cast<std::size_t>(world().size);
  const Arena none(0);
  const Arena arena(8000 * size);
  std::uint64_t iteration = 1;
  for (const Form form : kForms) {
    for (const std::size_t count : {1, 2, 3, 1000}) {
      Shape shape{op, 8 * count, true};
      shape.width = 8;
      check_point(shape, form, Memory::heap, zoo()[0], iteration += 100, 3, none, arena);
      check_point(shape, form, Memory::ferry, zoo()[3], iteration += 100, 3, none, arena);
    }
  }
}

inline void in_place_small_blocks(Operation op) {
  const Arena none(0);
  const Arena arena(33 * static_cast<std::size_t>(world().size));
  for (unsigned bytes = 1; bytes <= 33; ++bytes) {
    const Shape shape = grid_shape(op, bytes, true, bytes);
    const auto memory = static_cast<Memory>(bytes % kMemories);
    check_point(shape, Form::blocking, memory, zoo()[0], bytes * 100, 3, none, arena);
  }
}

// A call with these arguments on all ranks must succeed and write nothing.
inline void check_nothing_moves(
    Operation op, const void* sendbuf, TypedCount sent, void* recvbuf, TypedCount received) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  const auto [sn, st] = sent;
  const auto [rn, rt] = received;
  ferry_request request = FERRY_REQUEST_NULL;
  int rc = MPI_SUCCESS;
  if (op == Operation::alltoall) {
    CHECK(ferry_alltoall(sendbuf, sn, st, recvbuf, rn, rt, comm) == MPI_SUCCESS);
    rc = ferry_alltoall_init(sendbuf, sn, st, recvbuf, rn, rt, comm, MPI_INFO_NULL, &request);
  } else if (op == Operation::allgather) {
    CHECK(ferry_allgather(sendbuf, sn, st, recvbuf, rn, rt, comm) == MPI_SUCCESS);
    rc = ferry_allgather_init(sendbuf, sn, st, recvbuf, rn, rt, comm, MPI_INFO_NULL, &request);
  } else {
    const auto [n, type] = world().rank == 0 ? sent : received;
    CHECK(ferry_bcast(recvbuf, n, type, 0, comm) == MPI_SUCCESS);
    rc = ferry_bcast_init(recvbuf, n, type, 0, comm, MPI_INFO_NULL, &request);
  }
  CHECK_MESSAGE(rc == MPI_SUCCESS, ferry_error_text());
  if (rc != MPI_SUCCESS) return;
  for (int i = 0; i < 2; ++i) {
    CHECK(ferry_start(&request) == MPI_SUCCESS);
    CHECK(ferry_wait(&request) == MPI_SUCCESS);
  }
  CHECK(ferry_request_free(&request) == MPI_SUCCESS);
}

inline void zero_count_of_null_type(Operation op) {
  if (ferry_is_off()) return;
  const Arena arena(8);
  const View view = arena.view(Memory::heap, 0);
  check_nothing_moves(op, nullptr, {0, MPI_DATATYPE_NULL}, view.data(), {0, MPI_DATATYPE_NULL});
  check_nothing_moves(op, nullptr, {0, MPI_DATATYPE_NULL}, view.data(), {0, MPI_INT});
  CHECK(view.canaries_intact());
}

inline void zero_size_types(Operation op) {
  const Arena arena(8);
  const View view = arena.view(Memory::heap, 0);
  unsigned char nothing = 0;
  Types types;
  const MPI_Datatype empty = types.contiguous(0, MPI_INT);
  const TypedCount choices[] = {{0, MPI_INT}, {1, empty}};
  for (const TypedCount& sent : choices) {
    for (const TypedCount& received : choices) {
      check_nothing_moves(op, &nothing, sent, view.data(), received);
    }
  }
  CHECK(view.canaries_intact());
}

inline void zero_counts_aliased(Operation op) {
  const Arena arena(8);
  const View view = arena.view(Memory::ferry, 0);
  const TypedCount zero{0, MPI_INT};
  check_nothing_moves(op, nullptr, zero, nullptr, zero);
  if (!ferry_is_off()) check_nothing_moves(op, view.data(), zero, view.data(), zero);
  const bool null_here = world().rank % 2 == 0;
  check_nothing_moves(op, nullptr, zero, null_here ? nullptr : view.data(), zero);
  CHECK(view.canaries_intact());
}

inline void packet_limit(Operation op) {
  const std::size_t limit = std::stoul(environment("FERRY_MAX_PACKET_BYTES", "4096"));
  const std::size_t largest = 2 * limit + 1;
  const Arena send(largest * static_cast<std::size_t>(world().size));
  const Arena recv(largest * static_cast<std::size_t>(world().size));
  std::uint64_t iteration = 1;
  for (const std::size_t bytes : {limit - 1, limit, limit + 1, largest - 2, largest - 1, largest}) {
    for (const Memory memory : {Memory::ferry, Memory::interior, Memory::heap}) {
      const Form form = kForms[iteration % 3];
      check_point({op, bytes}, form, memory, zoo()[0], iteration += 100, 3, send, recv);
    }
  }
}

// Start k moves the data present at start k. Poison lies in the buffers between init and the first
// start, and is in the receive buffer before every start.
inline void many_starts(Operation op) {
  const auto size = static_cast<std::size_t>(world().size);
  const Arena send(20000 * size);
  const Arena recv(20000 * size);
  const int most = world().size <= 2 && !small_grid() ? 1000 : 100;
  std::uint64_t iteration = 1;
  for (const bool in_place : {false, true}) {
    if (in_place && op == Operation::bcast) continue;
    for (const std::size_t bytes : {8, 3000, 20000}) {
      for (const int starts : {1, 2, 3, bytes == 8 ? most : 20}) {
        const Shape shape{op, bytes, in_place};
        const auto memory = static_cast<Memory>(iteration % kMemories);
        check_point(
            shape, Form::persistent, memory, zoo()[0], iteration += 2001, starts, send, recv);
      }
    }
  }
}

// More runs than 16-bit counters hold where a run is cheap (at most one rank per core).
inline void soak(Operation op) {
  const bool cheap = world().size <= 2 && !small_grid() && !ferry_is_off();
  const int rounds = cheap ? 70000 : small_grid() ? 100 : 500;
  const Arena send(8 * static_cast<std::size_t>(world().size));
  const Arena recv(8 * static_cast<std::size_t>(world().size));
  for (const Form form : {Form::nonblocking, Form::persistent}) {
    const Shape shape{op, 8};
    check_point(shape, form, Memory::heap, zoo()[1], 1, rounds, send, recv);
  }
}

} // namespace ferry::test
