// SPDX-License-Identifier: MIT
#include "collective_grid.hpp"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "configuration.hpp"
#include "reduction.hpp"

namespace ferry::test {
namespace {

constexpr int kStarts = 3;
constexpr int kTries = 1 << 30; // of ferry_test; the time limit ends them sooner
constexpr int kBuiltInReductions = kReductions - 1; // without the operation of the program

// Around what a slot holds, and sizes of each way beyond.
std::vector<std::int64_t> sizes() {
  std::vector<std::int64_t> all = {0, 1, 8, 63, 64, 65, 600, 4063, 4064, 4065, 8192, 65536, 200000};
  if (!small_grid()) all.insert(all.end(), {7, 16, 1023, 1024, 1025, 32767, 100001});
  return all;
}

Configuration point(Coll coll, Way way, bool in_place, std::int64_t bytes, std::uint64_t index) {
  Configuration c;
  c.seed = mix(index + 1000 * static_cast<std::uint64_t>(coll) + 7);
  c.form = {coll, way, true, in_place};
  Dice dice(c.seed);
  c.comm = static_cast<std::size_t>(dice.between(0, static_cast<std::int64_t>(zoo().size()) - 1));
  c.root = static_cast<int>(dice.between(0, 1000));
  c.basic = bytes > 70000 ? Basic::number : static_cast<Basic>(dice.between(0, kBasics - 1));
  c.reduction = static_cast<int>(dice.between(0, kBuiltInReductions - 1));
  set_elements(c, bytes, dice);
  return c;
}

std::string start_once(const Operation& operation, ferry_request* request, std::uint64_t start) {
  const Call& call = operation.call();
  const bool persistent = call.form.way == Way::persistent;
  int code = persistent ? ferry_start(request) : make_ferry_call(call, request);
  if (code == MPI_SUCCESS) code = complete_call(call, request, start % 2 == 0);
  if (code != MPI_SUCCESS) return std::string("error: ") + ferry_error_text();
  if (call.form.way == Way::nonblocking && *request != FERRY_REQUEST_NULL) {
    return "the request is not set to NULL";
  }
  return operation.problem();
}

std::string run_point(const Configuration& c, const Comm& comm) {
  const std::unique_ptr<Operation> operation = make_operation(c, comm);
  const bool persistent = c.form.way == Way::persistent;
  ferry_request request = FERRY_REQUEST_NULL;
  std::string problem;
  if (persistent) {
    operation->prepare(c.seed); // what lies in the buffers now is not what a start moves
    if (make_ferry_call(operation->call(), &request) != MPI_SUCCESS) {
      return std::string("init: ") + ferry_error_text();
    }
    operation->free_types();
  }
  // Goes on after wrong data, so that all ranks make the same calls.
  for (std::uint64_t start = 0; start < kStarts; ++start) {
    operation->prepare(c.seed + start + 1);
    const std::string found = start_once(*operation, &request, start);
    if (problem.empty() && !found.empty())
      problem = "start " + std::to_string(start) + ": " + found;
  }
  if (persistent && ferry_request_free(&request) != MPI_SUCCESS) problem += " free failed";
  return problem;
}

} // namespace

int complete_call(const Call& call, ferry_request* request, bool by_wait) {
  if (call.form.way == Way::blocking) return MPI_SUCCESS;
  if (by_wait) return ferry_wait(request);
  for (int i = 0; i < kTries; ++i) {
    int flag = 0;
    const int code = ferry_test(request, &flag);
    if (code != MPI_SUCCESS || flag != 0) return code;
    std::this_thread::yield();
  }
  return MPI_ERR_OTHER;
}

void run_collective(Coll coll, Way way) {
  const std::vector<std::int64_t> once = sizes();
  std::vector<std::int64_t> all = once;
  if (!small_grid()) all.insert(all.end(), once.begin(), once.end());
  run_collective(coll, way, all);
}

void run_collective(Coll coll, Way way, const std::vector<std::int64_t>& sizes) {
  std::uint64_t index = 10000 * static_cast<std::uint64_t>(way);
  for (const std::int64_t bytes : sizes) {
    for (const bool in_place : {false, true}) {
      ++index;
      if (in_place && !has_in_place(coll)) continue;
      const Configuration c = point(coll, way, in_place, bytes, index);
      const Comm& comm = zoo()[c.comm];
      note(text_of(c, comm));
      if (!comm.member()) continue;
      const std::string problem = run_point(c, comm);
      CHECK_MESSAGE(problem == "", text_of(c, comm), ": ", problem);
    }
  }
}

} // namespace ferry::test
