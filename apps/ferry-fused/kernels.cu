// SPDX-License-Identifier: MIT
#include "apps/ferry-fused/kernels.hpp"

namespace ferry::fused {

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kEach = kTile * kTile / kThreads; // values of a tile that a thread makes
constexpr std::uint64_t kPatience = std::uint64_t{1} << 26; // looks, some seconds

// a[i][k] = x(i) + k % 7 and b[k][j] = y(j) + k % 5, all small whole numbers.
__host__ __device__ float x_of(std::uint64_t row) {
  return static_cast<float>(row % 5);
}
__host__ __device__ float y_of(std::uint64_t column) {
  return static_cast<float>(column % 3);
}

__device__ std::uint64_t row_of(const Shape& s, std::uint32_t rank, std::uint32_t row) {
  return std::uint64_t{rank} * s.rows + row;
}

// Tile `tile` of the product, tiles of a chunk of an owner side by side. Returns that chunk.
__device__ std::uint32_t make_tile(const Shape& s, const Operands& o, std::uint32_t tile) {
  __shared__ float a[kTile][kStep + 1];
  __shared__ float b[kStep][kTile];
  const std::uint32_t across = s.columns / kTile;
  const std::uint32_t of_chunk = across * (kChunkRows / kTile);
  const std::uint32_t chunks = s.rows / kChunkRows;
  // Chunks of all owners take turns, so that all links have something to carry from the beginning;
  // each rank begins with another owner.
  const std::uint32_t turn = tile / of_chunk;
  const std::uint32_t owner = (turn + s.rank + 1) % s.ranks;
  const std::uint32_t chunk = turn / s.ranks;
  const std::uint32_t within = tile % of_chunk;
  const std::uint32_t row = chunk * kChunkRows + within / across * kTile;
  const std::uint32_t column = within % across * kTile;
  const std::uint64_t width = std::uint64_t{s.ranks} * s.columns;
  const float* const from_b = o.b + std::uint64_t{owner} * s.columns + column;
  float sum[kEach] = {};
  for (std::uint32_t k = 0; k < s.depth; k += kStep) {
    for (unsigned i = threadIdx.x; i < kTile * kStep; i += kThreads) {
      a[i / kStep][i % kStep] = o.a[std::uint64_t{row + i / kStep} * s.depth + k + i % kStep];
      b[i / kTile][i % kTile] = from_b[(k + i / kTile) * width + i % kTile];
    }
    __syncthreads();
    for (unsigned step = 0; step < kStep; ++step) {
      const float right = b[step][threadIdx.x % kTile];
#pragma unroll
      for (unsigned e = 0; e < kEach; ++e) {
        sum[e] += a[threadIdx.x / kTile + e * (kThreads / kTile)][step] * right;
      }
    }
    __syncthreads();
  }
  float* const block = owner == s.rank && o.own != nullptr
                           ? o.own
                           : o.out + std::uint64_t{owner} * s.rows * s.columns;
  float* const to = block + std::uint64_t{row} * s.columns + column;
  for (unsigned e = 0; e < kEach; ++e) {
    const unsigned line = threadIdx.x / kTile + e * (kThreads / kTile);
    to[std::uint64_t{line} * s.columns + threadIdx.x % kTile] = sum[e];
  }
  return owner * chunks + chunk;
}

__global__ void product_kernel(Shape s, Operands o) {
  make_tile(s, o, blockIdx.x);
}

__device__ bool wait_for_tiles(const unsigned* finished, unsigned tiles) {
  device::Attempts patience(kPatience);
  bool all = device::load_acquire(finished) >= tiles;
  for (; !all && patience();) all = device::load_acquire(finished) >= tiles;
  return all;
}

// One thread for each owner, since a ring has one producer. Posts chunk after chunk, then waits for
// those of that rank.
__device__ bool post_chunks(const Shape& s, const Operands& o, const Posting& p, unsigned owner) {
  const std::uint32_t chunks = s.rows / kChunkRows;
  const unsigned tiles = s.columns / kTile * (kChunkRows / kTile);
  const std::uint64_t bytes = std::uint64_t{kChunkRows} * s.columns * sizeof(float);
  device::PutResult last;
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    if (!wait_for_tiles(p.finished + owner * chunks + chunk, tiles)) return false;
    const char* const from =
        reinterpret_cast<const char*>(o.out) + (std::uint64_t{owner} * chunks + chunk) * bytes;
    const std::uint64_t to = (std::uint64_t{s.rank} * chunks + chunk) * bytes;
    device::Attempts room(kPatience);
    last = device::put_signal(p.team, owner, to, from, bytes);
    for (; last.status == device::PutStatus::would_block && room();) {
      last = device::put_signal(p.team, owner, to, from, bytes);
    }
    if (last.status != device::PutStatus::done) return false;
  }
  const device::Attempts patience(kPatience);
  return device::wait_signal(p.team, owner, p.run * chunks, patience) &&
         device::flush(p.team, owner, last, patience);
}

// Workgroup 0 posts, all others make tiles.
__global__ void fused_kernel(Shape s, Operands o, Posting p) {
  if (blockIdx.x == 0) {
    const unsigned owner = threadIdx.x;
    if (owner < s.ranks && owner != s.rank && !post_chunks(s, o, p, owner)) {
      atomicAdd(reinterpret_cast<unsigned long long*>(p.failed), 1ULL);
    }
    return;
  }
  const std::uint32_t chunk = make_tile(s, o, blockIdx.x - 1);
  __syncthreads(); // the whole tile before the count, which the thread that posts acquires
  if (threadIdx.x != 0) return;
  device::release_fence();
  device::fetch_add(p.finished + chunk, 1U);
}

__global__ void fill_kernel(Shape s, float* a, float* b) {
  const std::uint64_t width = std::uint64_t{s.ranks} * s.columns;
  const std::uint64_t of_a = std::uint64_t{s.rows} * s.depth;
  const std::uint64_t all = of_a + width * s.depth;
  for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all;
       i += std::uint64_t{gridDim.x} * blockDim.x) {
    if (i < of_a) {
      const auto row = static_cast<std::uint32_t>(i / s.depth);
      a[i] = x_of(row_of(s, s.rank, row)) + static_cast<float>(i % s.depth % 7);
    } else {
      b[i - of_a] = y_of((i - of_a) % width) + static_cast<float>((i - of_a) / width % 5);
    }
  }
}

__global__ void check_kernel(Shape s, const float* in, unsigned long long* wrong) {
  float sum7 = 0, sum5 = 0, both = 0;
  for (std::uint32_t k = 0; k < s.depth; ++k) {
    sum7 += static_cast<float>(k % 7);
    sum5 += static_cast<float>(k % 5);
    both += static_cast<float>(k % 7 * (k % 5));
  }
  const std::uint64_t block = std::uint64_t{s.rows} * s.columns;
  for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < block * s.ranks;
       i += std::uint64_t{gridDim.x} * blockDim.x) {
    const auto row = static_cast<std::uint32_t>(i % block / s.columns);
    const float x = x_of(row_of(s, static_cast<std::uint32_t>(i / block), row));
    const float y = y_of(std::uint64_t{s.rank} * s.columns + i % s.columns);
    const float expected = x * y * static_cast<float>(s.depth) + x * sum5 + y * sum7 + both;
    if (in[i] != expected) atomicAdd(wrong, 1ULL);
  }
}

unsigned tiles_of(const Shape& s) {
  return s.rows / kTile * (s.columns / kTile) * s.ranks;
}

} // namespace

void launch_product(const Shape& shape, const Operands& operands, CUstream_st* stream) {
  product_kernel<<<tiles_of(shape), kThreads, 0, stream>>>(shape, operands);
}

void launch_fused(
    const Shape& shape, const Operands& operands, const Posting& posting, CUstream_st* stream) {
  fused_kernel<<<tiles_of(shape) + 1, kThreads, 0, stream>>>(shape, operands, posting);
}

void launch_fill(const Shape& shape, float* a, float* b, CUstream_st* stream) {
  fill_kernel<<<256, kThreads, 0, stream>>>(shape, a, b);
}

void launch_check(
    const Shape& shape, const float* in, unsigned long long* wrong, CUstream_st* stream) {
  check_kernel<<<256, kThreads, 0, stream>>>(shape, in, wrong);
}

} // namespace ferry::fused
