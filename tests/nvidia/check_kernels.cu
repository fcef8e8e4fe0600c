// SPDX-License-Identifier: MIT
#include "device/platform.hpp"
#include "device/rma.hpp"
#include "device/signal.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "tests/nvidia/check_kernels.hpp"

namespace ferry::test {

namespace {

__device__ std::uint32_t word(std::uint64_t round, int sender, int receiver, std::uint64_t at) {
  std::uint64_t x = round * 0x9e3779b97f4a7c15ULL + sender * 0x10001ULL + receiver * 0x101ULL + at;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  return static_cast<std::uint32_t>(x >> 29);
}

__global__ void advance_round(std::uint64_t* round) {
  ++*round;
}

__global__ void fill_words(Rounds r) {
  const std::uint64_t all = r.words * r.ranks;
  for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all;
       i += gridDim.x * blockDim.x) {
    r.send[i] = word(*r.round, r.rank, static_cast<int>(i / r.words), i % r.words);
  }
}

__global__ void check_words(Rounds r) {
  const std::uint64_t all = r.words * r.ranks;
  for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all;
       i += gridDim.x * blockDim.x) {
    const auto sender = static_cast<int>(i / r.words);
    if (r.recv[i] != word(*r.round, sender, r.rank, i % r.words)) {
      atomicAdd(reinterpret_cast<unsigned long long*>(r.wrong), 1ULL);
    }
  }
}

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void release_starts(Releases r) {
  const std::uint64_t begin = nanoseconds();
  const device::Attempts patience(std::uint64_t{1} << 24);
  for (std::uint64_t n = 1; n <= r.starts.starts; ++n) {
    if (!device::start(r.starts, n) || !device::wait_start(r.starts, n, patience)) {
      ++*r.given_up;
      return;
    }
  }
  *r.nanoseconds = nanoseconds() - begin;
}

__global__ void exchange_puts(Puts p) {
  const device::Attempts patience(std::uint64_t{1} << 24);
  const std::uint64_t begin = nanoseconds();
  for (int i = 0; i < p.rounds; ++i) {
    const std::uint64_t buffer = i % 2 * p.words;
    const std::uint64_t words = i % p.long_every == 0 ? p.words : 1;
    std::uint64_t* const source = p.source + buffer;
    for (std::uint64_t k = 0; k < words; ++k) source[k] = word(i, p.team.rank, p.peer, k);
    const auto put = device::put_signal(
        p.team, p.peer, buffer * sizeof(std::uint64_t), source, words * sizeof(std::uint64_t));
    const auto expected = static_cast<std::uint64_t>(i) + 1;
    if (put.status != device::PutStatus::done ||
        !device::wait_signal(p.team, p.peer, expected, patience)) {
      ++*p.given_up;
      return;
    }
    for (std::uint64_t k = 0; k < words; ++k) {
      const std::uint64_t got = device::load_relaxed(p.window + buffer + k);
      if (got != word(i, p.peer, p.team.rank, k)) ++*p.wrong;
    }
    if (!device::flush(p.team, p.peer, put, patience)) ++*p.given_up;
  }
  *p.nanoseconds = nanoseconds() - begin;
}

} // namespace

void launch_puts(const Puts& puts, hipStream_t stream) {
  exchange_puts<<<1, 1, 0, stream>>>(puts);
  nvidia::check_runtime(hipGetLastError(), "launch");
}

void launch_fill(const Rounds& rounds, hipStream_t stream) {
  advance_round<<<1, 1, 0, stream>>>(rounds.round);
  fill_words<<<16, 256, 0, stream>>>(rounds);
  nvidia::check_runtime(hipGetLastError(), "launch");
}

void launch_check(const Rounds& rounds, hipStream_t stream) {
  check_words<<<16, 256, 0, stream>>>(rounds);
  nvidia::check_runtime(hipGetLastError(), "launch");
}

void launch_releases(const Releases& releases, hipStream_t stream) {
  release_starts<<<1, 1, 0, stream>>>(releases);
  nvidia::check_runtime(hipGetLastError(), "launch");
}

} // namespace ferry::test
