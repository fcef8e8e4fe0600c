// SPDX-License-Identifier: MIT
// Case 47: every legal order of initialising, starting, waiting for and freeing two persistent
// handles and freeing their communicator.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <ferry/ferry.h>

#include "communicators.hpp"
#include "pattern.hpp"

namespace ferry::test {

// An order is a word of events: A, B initialise; s, w start and wait for A; a, b free A, B; c frees
// the communicator. A is started twice, B never.
inline void extend_lifetime(
    std::string& word, const std::array<std::string, 3>& lines, std::array<std::size_t, 3> at,
    std::vector<std::string>& all) {
  bool complete = true;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (at[i] == lines[i].size()) continue;
    complete = false;
    const char event = lines[i][at[i]];
    const bool both_made = at[0] > 0 && at[1] > 0;
    if (event == 'c' && !both_made) continue;
    word.push_back(event);
    ++at[i];
    extend_lifetime(word, lines, at, all);
    --at[i];
    word.pop_back();
  }
  if (complete) all.push_back(word);
}

inline std::vector<std::string> lifetimes() {
  std::vector<std::string> all;
  std::string word;
  extend_lifetime(word, {"Aswswa", "Bb", "c"}, {0, 0, 0}, all);
  return all;
}

// Runs one order on a duplicate of world; "" when every call succeeds and every start moves its
// data.
inline std::string run_lifetime(const std::string& order) {
  Comm comm = duplicate();
  const int size = comm.size();
  const int rank = comm.rank();
  std::vector<std::uint64_t> sent(static_cast<std::size_t>(size));
  std::vector<std::uint64_t> received(sent.size());
  std::uint64_t value = 0;
  ferry_request a = FERRY_REQUEST_NULL;
  ferry_request b = FERRY_REQUEST_NULL;
  std::uint64_t start = 0;
  const auto data = [&](int from, int to) {
    return mix(start * 10000 + static_cast<std::uint64_t>(from * 100 + to));
  };
  std::string problem;
  for (const char event : order) {
    int rc = MPI_SUCCESS;
    if (event == 'A') {
      rc = ferry_alltoall_init(
          sent.data(), 1, MPI_UINT64_T, received.data(), 1, MPI_UINT64_T, comm.get(), MPI_INFO_NULL,
          &a);
    } else if (event == 'B') {
      rc = ferry_bcast_init(&value, 1, MPI_UINT64_T, 0, comm.get(), MPI_INFO_NULL, &b);
    } else if (event == 's') {
      ++start;
      received.assign(received.size(), 0);
      for (int j = 0; j < size; ++j) sent[static_cast<std::size_t>(j)] = data(rank, j);
      rc = ferry_start(&a);
    } else if (event == 'w') {
      rc = ferry_wait(&a);
      for (int j = 0; j < size; ++j) {
        const bool right = received[static_cast<std::size_t>(j)] == data(j, rank);
        if (!right && rc == MPI_SUCCESS && problem.empty()) problem = "wrong data";
      }
    } else if (event == 'c') {
      comm.free();
    } else {
      rc = ferry_request_free(event == 'a' ? &a : &b);
    }
    if (rc != MPI_SUCCESS && problem.empty())
      problem = std::string(1, event) + ": " + ferry_error_text();
  }
  return problem;
}

} // namespace ferry::test
