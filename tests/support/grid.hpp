// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <ferry/ferry.h>

#include "exchange.hpp"
#include "world.hpp"

namespace ferry::test {

inline constexpr std::size_t kKi = 1024;
inline constexpr int kTries =
    1 << 30; // bound of loops over ferry_test; the time limit ends them sooner

// Block sizes: the fixed ones, and each size at which a path may change, plus and minus one byte.
inline std::vector<std::size_t> grid_sizes() {
  std::vector<std::size_t> sizes = {0, 1, 7, 8, 15, 16, 17, 63, 64, 65};
  std::vector<std::size_t> edges = {kKi, 4 * kKi, 8 * kKi, 64 * kKi};
  if (!small_grid()) edges.insert(edges.end(), {256 * kKi, kKi * kKi});
  for (const std::size_t edge : edges) sizes.insert(sizes.end(), {edge - 1, edge, edge + 1});
  if (small_grid()) sizes.insert(sizes.end(), {256 * kKi + 1, kKi * kKi - 1});
  std::shuffle(sizes.begin(), sizes.end(), std::mt19937(20240607));
  return sizes;
}

// Complete a request by wait or by a loop over test.
inline int complete(ferry_request* request, bool by_wait) {
  if (by_wait) return ferry_wait(request);
  for (int i = 0; i < kTries; ++i) {
    int flag = 0;
    const int rc = ferry_test(request, &flag);
    if (rc != MPI_SUCCESS || flag != 0) return rc;
    std::this_thread::yield(); // others of this core have work to do
  }
  return MPI_ERR_OTHER;
}

// One iteration: data, call, oracle. A persistent request must have been initialised.
inline std::string run_once(
    const Exchange& exchange, Form form, ferry_request* request, std::uint64_t iteration) {
  exchange.prepare(iteration);
  int rc = form == Form::persistent ? ferry_start(request) : exchange.call(form, request);
  if (rc == MPI_SUCCESS && form != Form::blocking) rc = complete(request, iteration % 2 == 0);
  if (rc != MPI_SUCCESS) return std::string("error: ") + ferry_error_text();
  if (form == Form::nonblocking && *request != FERRY_REQUEST_NULL) return "request not set to NULL";
  return exchange.verify(iteration);
}

// iterations runs with changing data; "" or the first thing that went wrong. Goes on after wrong
// data, so that all ranks make the same calls.
inline std::string run_point(
    const Exchange& exchange, Form form, std::uint64_t first_iteration, int iterations) {
  std::string problem;
  ferry_request request = FERRY_REQUEST_NULL;
  exchange.spoil(first_iteration + 1000);
  if (form == Form::persistent && exchange.call(form, &request) != MPI_SUCCESS) {
    return std::string("init: ") + ferry_error_text();
  }
  exchange.spoil(first_iteration + 2000);
  for (int i = 0; i < iterations; ++i) {
    const std::uint64_t iteration = first_iteration + static_cast<std::uint64_t>(i);
    const std::string found = run_once(exchange, form, &request, iteration);
    if (problem.empty() && !found.empty()) problem = "run " + std::to_string(i) + ": " + found;
  }
  if (form == Form::persistent && ferry_request_free(&request) != MPI_SUCCESS && problem.empty()) {
    problem = std::string("free: ") + ferry_error_text();
  }
  return problem;
}

inline std::string describe(const Shape& shape, Form form, Memory memory, const Comm& comm) {
  return std::string(name_of(shape.op)) + " " + name_of(form) + " " + std::to_string(shape.bytes) +
         " B, " + name_of(memory) + ", " + comm.name() + (shape.in_place ? ", in place" : "") +
         ", root " + std::to_string(shape.root) + ", types " +
         std::to_string(static_cast<int>(shape.send_as)) + "/" +
         std::to_string(static_cast<int>(shape.recv_as));
}

// How many of the (communicator, memory) pairs a size meets in one run of the grid.
inline int grid_rounds(Form form, std::size_t bytes) {
  const bool large = bytes > 64 * kKi;
  if (small_grid()) return 1;
  const int rounds = world().size <= 2 ? (large ? 4 : 24) : (large ? 2 : 4);
  return form == Form::persistent ? (rounds + 3) / 4 : rounds;
}

// The point number n of the grid: everything but operation and size follows from n, so that all
// ranks agree; which spelling of the types a rank takes differs per rank (case 23).
inline Shape grid_shape(Operation op, std::size_t bytes, bool in_place, unsigned n) {
  constexpr TypedCount kIgnored[] = {
      {0, MPI_DATATYPE_NULL}, {-1, MPI_DATATYPE_NULL}, {77, MPI_BYTE}};
  const auto own = n + static_cast<unsigned>(world().rank);
  Shape shape;
  shape.op = op;
  shape.bytes = bytes;
  shape.in_place = in_place;
  shape.width = n % 3 == 0 ? 1 : n % 3 == 1 ? 4 : 8;
  shape.send_as = static_cast<Spelling>(own % kSpellings);
  shape.recv_as = static_cast<Spelling>((own / kSpellings) % kSpellings);
  shape.ignored = kIgnored[n % 3];
  return shape;
}

// The grid of one operation in one form: every size, in place or not, over a walk through all
// communicators and kinds of memory. Sizes come in random order.
inline void run_grid(Operation op, Form form) {
  const auto sizes = grid_sizes();
  const std::size_t largest = *std::max_element(sizes.begin(), sizes.end());
  const std::size_t capacity = largest * static_cast<std::size_t>(world().size);
  const Arena send(capacity);
  const Arena recv(capacity);
  const auto& comms = zoo();
  const auto pairs = static_cast<unsigned>(comms.size()) * kMemories;
  unsigned n = 0;
  for (const std::size_t bytes : sizes) {
    for (int in_place = 0; in_place < (op == Operation::bcast ? 1 : 2); ++in_place) {
      for (int round = 0; round < grid_rounds(form, bytes); ++round, ++n) {
        const unsigned pair = (n * 7) % pairs;
        const Comm& comm = comms[pair / kMemories];
        if (!comm.member()) continue;
        const auto memory = static_cast<Memory>(pair % kMemories);
        Shape shape = grid_shape(op, bytes, in_place != 0, n);
        shape.root = static_cast<int>(n) % comm.size();
        note(describe(shape, form, memory, comm));
        const Exchange exchange(shape, comm, memory, send, recv);
        const std::string problem = run_point(exchange, form, n * 10000ULL, 3);
        CHECK_MESSAGE(problem == "", describe(shape, form, memory, comm), ": ", problem);
      }
    }
  }
}

} // namespace ferry::test
