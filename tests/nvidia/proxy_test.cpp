// SPDX-License-Identifier: MIT
// Kernels that put: by store, and by packets for which a host thread drives the copy engines.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "device/threshold.hpp"
#include "lib/nvidia/backend.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "lib/nvidia/owners.hpp"
#include "tests/nvidia/check_kernels.hpp"
#include "tests/nvidia/process_team.hpp"

namespace ferry::test {

namespace {

using nvidia::check_runtime;

constexpr std::uint64_t kNoThreshold = ~std::uint64_t{0}; // that of the team

struct Load {
  std::uint64_t words;
  int rounds;
  std::uint64_t threshold = kNoThreshold;
  int long_every = 1;
};

int exchange(ProcessTeam& team, const Load& load) {
  int devices = 0;
  check_runtime(hipGetDeviceCount(&devices), "cudaGetDeviceCount");
  check_runtime(hipSetDevice(team.rank() % devices), "cudaSetDevice");
  const std::uint64_t bytes = 2 * load.words * sizeof(std::uint64_t);
  const nvidia::DeviceBlock window(bytes);
  const nvidia::DeviceBlock source(bytes);
  const nvidia::DeviceBlock counts(64);
  nvidia::Backend backend;
  const auto made = backend.make_team({window.get(), bytes, source.get(), bytes}, team);
  device::TeamHandle handle = made->handle();
  if (load.threshold != kNoThreshold) handle.threshold = load.threshold;
  const nvidia::Stream stream;
  team.barrier();
  launch_puts(
      {handle, static_cast<std::uint32_t>(1 - team.rank()), source.at<std::uint64_t>(0),
       window.at<std::uint64_t>(0), load.words, load.rounds, load.long_every,
       counts.at<std::uint64_t>(0), counts.at<std::uint64_t>(8), counts.at<std::uint64_t>(16)},
      stream.get());
  check_runtime(hipStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  std::uint64_t seen[3] = {};
  check_runtime(hipMemcpy(seen, counts.get(), sizeof seen, hipMemcpyDefault), "cudaMemcpy");
  team.barrier();
  if (!made->error().ok()) std::fprintf(stderr, "%s\n", made->error().cause.c_str());
  std::printf(
      "rank %d: %d puts of %llu bytes (one of %d), those below %llu by store: %.2f us each, "
      "%llu words wrong, %llu given up\n",
      team.rank(), load.rounds, static_cast<unsigned long long>(bytes / 2), load.long_every,
      static_cast<unsigned long long>(handle.threshold),
      static_cast<double>(seen[0]) / load.rounds / 1e3, static_cast<unsigned long long>(seen[1]),
      static_cast<unsigned long long>(seen[2]));
  return seen[1] == 0 && seen[2] == 0 && made->error().ok() ? 0 : 1;
}

void run(const Load& load, bool threads) {
  Job job;
  job.threads = threads;
  job.set_up = [](int) { setenv("CUDA_MODULE_LOADING", "EAGER", 1); };
  job.body = [&](ProcessTeam& team) { return exchange(team, load); };
  for (const int result : run_job(job)) CHECK(result == 0);
}

// Where kernels of the ranks run at the same time: on a GPU each, or as threads of one process.
bool as_threads() {
  return visible_gpus() < 2;
}

} // namespace

TEST_CASE("puts of kernels that a proxy drives") {
  for (const Load& load : {Load{1, 2000, 0}, Load{1000, 200, 0}}) run(load, as_threads());
}

TEST_CASE("puts of kernels that go by store") {
  run({1, 20'000}, as_threads());
  run({device::kProxyThreshold.bytes / 8 - 1, 2000}, as_threads());
}

TEST_CASE("puts of kernels by store and by packets in turn") {
  run({1000, 3000, kNoThreshold, 3}, as_threads());
}

// What kProxyThreshold says, measured again.
TEST_CASE("puts of kernels, by store and by packets, size by size") {
  for (const std::uint64_t words : {8, 32, 64, 128, 256, 512, 1024, 2048}) {
    for (const std::uint64_t threshold : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
      run({words, 300, threshold}, as_threads());
    }
  }
}

TEST_CASE("puts of kernels of two processes, whatever the GPUs") {
  run({1, 200, 0}, false);
  run({1, 200}, false);
}

} // namespace ferry::test
