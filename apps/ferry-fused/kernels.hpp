// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <ferry/device.hpp>

struct CUstream_st;

namespace ferry::fused {

// A rank multiplies its rows of A with B; block j of the columns of the product belongs to rank j.
// out[owner][row][column] in the memory of whoever computes, in[rank][row][column] at the owner.
struct Shape {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t rows = 0; // of a rank; a multiple of kChunkRows
  std::uint32_t columns = 0; // of an owner; a multiple of kTile
  std::uint32_t depth = 0; // a multiple of kStep
};

inline constexpr std::uint32_t kTile = 64; // the product is made in tiles of kTile x kTile
inline constexpr std::uint32_t kStep = 16;
inline constexpr std::uint32_t kChunkRows = 512; // rows that are put to their owner at once

struct Operands {
  const float* a = nullptr; // rows x depth
  const float* b = nullptr; // depth x (ranks * columns)
  float* out = nullptr;
  float* own = nullptr; // where the block that stays here goes; null: into out like the others
};

// What the workgroup that posts is given.
struct Posting {
  device::TeamHandle team; // the window is `in`
  unsigned* finished = nullptr; // tiles of each chunk, [owner][chunk]; zero before each run
  std::uint64_t* failed = nullptr; // counts
  std::uint64_t run = 0; // from 1
};

// The product; then its blocks lie in out.
void launch_product(const Shape& shape, const Operands& operands, CUstream_st* stream);
// The same, and each chunk leaves for its owner when its last tile is finished. When the kernel
// ends, the chunks of all ranks have arrived in the window here.
void launch_fused(
    const Shape& shape, const Operands& operands, const Posting& posting, CUstream_st* stream);
// Values with which a product is known without multiplying.
void launch_fill(const Shape& shape, float* a, float* b, CUstream_st* stream);
// Counts wrong values of in.
void launch_check(
    const Shape& shape, const float* in, unsigned long long* wrong, CUstream_st* stream);

} // namespace ferry::fused
