// SPDX-License-Identifier: MIT
// Kernels that post packets, and the host thread that drives the copy engines for them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "lib/nvidia/backend.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "lib/nvidia/owners.hpp"
#include "tests/nvidia/check_kernels.hpp"
#include "tests/nvidia/process_team.hpp"

namespace ferry::test {

namespace {

using nvidia::check_runtime;

struct Size {
  std::uint64_t words;
  int rounds;
};

int exchange(ProcessTeam& team, const Size& size) {
  int devices = 0;
  check_runtime(hipGetDeviceCount(&devices), "cudaGetDeviceCount");
  const int device = team.rank() % devices;
  check_runtime(hipSetDevice(device), "cudaSetDevice");
  const std::uint64_t bytes = 2 * size.words * sizeof(std::uint64_t);
  const nvidia::DeviceBlock window(bytes);
  const nvidia::DeviceBlock source(bytes);
  const nvidia::DeviceBlock counts(64);
  nvidia::Backend backend;
  const auto made = backend.make_team({window.get(), bytes, source.get(), bytes}, team);
  const core::KernelTeam& handles = *made;
  const nvidia::Stream stream;
  team.barrier();
  launch_puts(
      {handles.handle(), static_cast<std::uint32_t>(1 - team.rank()), source.at<std::uint64_t>(0),
       window.at<std::uint64_t>(0), size.words, size.rounds, counts.at<std::uint64_t>(0),
       counts.at<std::uint64_t>(8), counts.at<std::uint64_t>(16)},
      stream.get());
  check_runtime(hipStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  std::uint64_t seen[3] = {};
  check_runtime(hipMemcpy(seen, counts.get(), sizeof seen, hipMemcpyDefault), "cudaMemcpy");
  team.barrier();
  if (!handles.error().ok()) std::fprintf(stderr, "%s\n", handles.error().cause.c_str());
  std::printf(
      "rank %d: %d puts of %llu bytes by the proxy: %.2f us each, %llu words wrong\n", team.rank(),
      size.rounds, static_cast<unsigned long long>(bytes / 2),
      static_cast<double>(seen[0]) / size.rounds / 1e3, static_cast<unsigned long long>(seen[1]));
  return seen[1] == 0 && seen[2] == 0 && handles.error().ok() ? 0 : 1;
}

} // namespace

TEST_CASE("kernels put by rings that a proxy drives") {
  for (const Size& size : {Size{1, 2000}, Size{1000, 200}}) {
    Job job;
    job.set_up = [](int) { setenv("CUDA_MODULE_LOADING", "EAGER", 1); };
    job.body = [&](ProcessTeam& team) { return exchange(team, size); };
    for (const int result : run_job(job)) CHECK(result == 0);
  }
}

} // namespace ferry::test
