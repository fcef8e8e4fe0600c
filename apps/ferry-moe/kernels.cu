// SPDX-License-Identifier: MIT
#include "apps/ferry-moe/kernels.hpp"

namespace ferry::moe {

namespace {

constexpr unsigned kThreads = 256;
constexpr std::uint64_t kPatience = std::uint64_t{1} << 26; // looks, some seconds

__device__ float value_of(std::uint64_t token, std::uint32_t column) {
  return static_cast<float>((token * 7 + column) % kValues);
}

// Rows of the next rank come first, so that they leave while this rank's own are made.
__device__ std::uint64_t row_of(const Rows& r, std::uint64_t turn) {
  return (turn + r.first[(r.rank + 1) % r.ranks]) % r.count;
}

__device__ std::uint32_t owner_of(const Rows& r, std::uint64_t row) {
  std::uint32_t owner = 0;
  while (row >= r.first[owner + 1]) ++owner;
  return owner;
}

__device__ void make_row(const Rows& r, std::uint64_t row, float* to) {
  const std::uint64_t source = r.order != nullptr ? r.order[row] : row;
  for (std::uint32_t c = threadIdx.x; c < r.width; c += kThreads) {
    float value = r.in[source * r.width + c];
    for (std::uint32_t i = 0; i < r.work; ++i) value += r.add;
    to[c] = value;
  }
}

__global__ void rows_kernel(Rows r) {
  const std::uint64_t row = row_of(r, blockIdx.x);
  make_row(r, row, r.out + row * r.width);
}

// One thread for each peer, since a ring has one producer.
__device__ bool put_rows(const Rows& r, const Posting& p, std::uint32_t peer) {
  const auto rows = static_cast<unsigned>(r.first[peer + 1] - r.first[peer]);
  device::Attempts made(kPatience);
  bool all = device::load_acquire(p.finished + peer) >= rows;
  for (; !all && made();) all = device::load_acquire(p.finished + peer) >= rows;
  if (!all) return false;
  const std::uint64_t row_bytes = r.width * sizeof(float);
  const float* const from = r.out + r.first[peer] * r.width;
  const std::uint64_t to = p.to_row[peer] * row_bytes;
  device::Attempts room(kPatience);
  device::PutResult put = device::put_signal(p.team, peer, to, from, rows * row_bytes);
  for (; put.status == device::PutStatus::would_block && room();) {
    put = device::put_signal(p.team, peer, to, from, rows * row_bytes);
  }
  if (put.status != device::PutStatus::done) return false;
  const device::Attempts patience(kPatience);
  return device::wait_signal(p.team, peer, p.signals, patience) &&
         device::flush(p.team, peer, put, patience);
}

// Workgroup 0 puts, each of the others makes a row.
__global__ void rows_and_put_kernel(Rows r, Posting p) {
  if (blockIdx.x == 0) {
    const unsigned peer = threadIdx.x;
    if (peer < r.ranks && peer != r.rank && !put_rows(r, p, peer)) {
      atomicAdd(reinterpret_cast<unsigned long long*>(p.failed), 1ULL);
    }
    return;
  }
  const std::uint64_t row = row_of(r, blockIdx.x - 1);
  const std::uint32_t owner = owner_of(r, row);
  const bool stays = owner == r.rank;
  make_row(r, row, stays ? p.own + (row - r.first[owner]) * r.width : r.out + row * r.width);
  __syncthreads(); // the whole row before the count, which the thread that puts acquires
  if (stays || threadIdx.x != 0) return;
  device::release_fence();
  device::fetch_add(p.finished + owner, 1U);
}

__global__ void scatter_kernel(Rows r, const float* from, float* tokens) {
  const std::uint64_t to = r.order[blockIdx.x];
  for (std::uint32_t c = threadIdx.x; c < r.width; c += kThreads) {
    tokens[to * r.width + c] = from[std::uint64_t{blockIdx.x} * r.width + c];
  }
}

__global__ void fill_kernel(Rows r, std::uint64_t first_token, float* tokens) {
  for (std::uint32_t c = threadIdx.x; c < r.width; c += kThreads) {
    tokens[std::uint64_t{blockIdx.x} * r.width + c] = value_of(first_token + blockIdx.x, c);
  }
}

__global__ void check_kernel(
    Rows r, std::uint64_t first_token, const float* tokens, const float* added,
    unsigned long long* wrong) {
  for (std::uint32_t c = threadIdx.x; c < r.width; c += kThreads) {
    const float expected = value_of(first_token + blockIdx.x, c) + added[blockIdx.x];
    if (tokens[std::uint64_t{blockIdx.x} * r.width + c] != expected) atomicAdd(wrong, 1ULL);
  }
}

unsigned workgroups(const Rows& rows) {
  return static_cast<unsigned>(rows.count);
}

} // namespace

void launch_rows(const Rows& rows, CUstream_st* stream) {
  if (rows.count == 0) return;
  rows_kernel<<<workgroups(rows), kThreads, 0, stream>>>(rows);
}

void launch_rows_and_put(const Rows& rows, const Posting& posting, CUstream_st* stream) {
  rows_and_put_kernel<<<workgroups(rows) + 1, kThreads, 0, stream>>>(rows, posting);
}

void launch_scatter(const Rows& rows, const float* from, float* tokens, CUstream_st* stream) {
  scatter_kernel<<<workgroups(rows), kThreads, 0, stream>>>(rows, from, tokens);
}

void launch_fill(const Rows& rows, std::uint64_t first_token, float* tokens, CUstream_st* stream) {
  fill_kernel<<<workgroups(rows), kThreads, 0, stream>>>(rows, first_token, tokens);
}

void launch_check(
    const Rows& rows, std::uint64_t first_token, const float* tokens, const float* added,
    unsigned long long* wrong, CUstream_st* stream) {
  check_kernel<<<workgroups(rows), kThreads, 0, stream>>>(rows, first_token, tokens, added, wrong);
}

} // namespace ferry::moe
