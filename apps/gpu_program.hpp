// SPDX-License-Identifier: MIT
// What the programs for GPUs share that show kernels which put: ferry-fused and ferry-moe.
#pragma once

#include <cuda_runtime_api.h>
#include <ferry/ferry.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <vector>

#include "apps/ferry-bench/device/gpu.hpp"

namespace ferry::apps {

inline void check(int code, const char* call) {
  if (code == cudaSuccess) return;
  throw std::runtime_error(
      fmt::format("{}: {}", call, cudaGetErrorString(static_cast<cudaError_t>(code))));
}

inline void check_ferry(int code) {
  if (code != MPI_SUCCESS) throw std::runtime_error(ferry_error_text());
}

struct Times {
  double median = 0; // microseconds, of the slowest rank
  double least = 0;
};

// A run begins when all ranks have ended the last one, so that no window is written too early.
inline Times time_runs(const bench::OwnedStream& stream, const std::function<void()>& run) {
  constexpr int kRuns = 15;
  std::vector<double> times;
  for (int i = -2; i < kRuns; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    double us = bench::time_on_stream(stream, 1, [&](bench::GpuStream) { run(); });
    MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i >= 0) times.push_back(us);
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front()};
}

// Runs once, after the caller has poisoned its buffers; `count` adds the wrong values of this rank
// to the first of the two words at `counts`, on the stream; the second counts waits of kernels that
// gave up. Wrong values of all ranks.
inline std::uint64_t wrong_on_all_ranks(
    const bench::OwnedStream& stream, ferry_device_team team, void* counts,
    const std::function<void()>& run, const std::function<void()>& count) {
  check(cudaMemset(counts, 0, sizeof(std::uint64_t)), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  MPI_Barrier(MPI_COMM_WORLD);
  run();
  count();
  stream.synchronize();
  check(cudaGetLastError(), "kernel");
  check_ferry(ferry_device_team_check(team));
  std::uint64_t here[2] = {};
  check(cudaMemcpy(here, counts, sizeof here, cudaMemcpyDefault), "cudaMemcpy");
  if (here[1] != 0) throw std::runtime_error("a wait of a kernel gave up");
  std::uint64_t all = 0;
  MPI_Allreduce(&here[0], &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

// main() of such a program: MPI around `run`, which gives the exit status or throws.
inline int run_program(
    const char* name, int argc, char** argv, const std::function<int(int, char**)>& run) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int result = 1;
  try {
    result = run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return result;
}

} // namespace ferry::apps
