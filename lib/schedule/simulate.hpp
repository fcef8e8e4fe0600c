// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/schedule/schedule.hpp"

namespace ferry::core {

// What steps cost on a machine, in nanoseconds.
struct StepCosts {
  double copy = 0; // to begin a copy
  double byte = 0; // each byte of it
  double signal = 0; // to store a flag
  double flight = 0; // from that store until the waiter can see it
  double await = 0; // to look at a flag that is there
};

struct SimulateInput {
  int ranks = 1;
  // The schedule of a rank, asked for when it is needed and as often as it is.
  std::function<Schedule(int rank)> plan;
  StepCosts costs;
  bool one_thread = true; // runs all queues of a rank; false: each has an engine of its own
  // The plan of rank r is that of rank 0 with all ranks r further round: rank 0 stands for all.
  bool symmetric = false;
};

struct Simulation {
  double ns = 0; // from the common entry until the last rank has left
  int last = 0; // the rank that leaves last
  std::uint64_t steps = 0; // that were run
  std::uint64_t bytes = 0; // that were copied
  std::uint64_t plans = 0; // that were asked for
  std::string fault; // not empty: a step that waits for ever
};

// How long one epoch takes when all ranks enter together. Links and memory are not shared: a copy
// takes as long beside others as alone. With one thread a rank, and several queues, a step that
// could have run a little earlier may be taken later. Memory: 8 bytes for each kind of signal and
// ordered pair of ranks that uses it; schedules are kept only while they are few.
[[nodiscard]] Simulation simulate(const SimulateInput& input);

} // namespace ferry::core
