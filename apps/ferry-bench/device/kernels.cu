// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/device/kernels.hpp"

#include <stdexcept>

#include "device/signal.hpp"
#include "device/start.hpp"

namespace ferry::bench {

namespace {

__device__ std::uint64_t now() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void releases_kernel(Releases r) {
  const std::uint64_t begin = now();
  const device::Attempts patience(std::uint64_t{1} << 24);
  for (std::uint64_t n = 1; n <= r.starts.starts; ++n) {
    if (!device::start(r.starts, n) || !device::wait_start(r.starts, n, patience)) {
      ++*r.given_up;
      return;
    }
  }
  *r.nanoseconds = now() - begin;
}

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(code));
}

} // namespace

void launch_releases(const Releases& releases, CUstream_st* stream) {
  releases_kernel<<<1, 1, 0, stream>>>(releases);
  check(cudaGetLastError(), "kernel launch");
}

void load_releases() {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, releases_kernel), "load kernels");
}

} // namespace ferry::bench
