// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <ferry/device.hpp>

struct CUstream_st;

namespace ferry::moe {

inline constexpr std::uint32_t kValues = 1024; // tokens hold whole numbers below this

// Rows of `width` floats, sorted by the rank that they belong to: those of rank p are
// [first[p], first[p + 1]). Row i is made of row order[i] of `in`, or of row i where order is null.
struct Rows {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t width = 0;
  std::uint64_t count = 0; // first[ranks]
  const std::uint64_t* first = nullptr;
  const std::uint32_t* order = nullptr;
  const float* in = nullptr;
  float* out = nullptr;
  float add = 0; // the expert: adds this `work` times
  std::uint32_t work = 0;
};

// What a kernel that puts its rows to their ranks is given besides.
struct Posting {
  device::TeamHandle team;
  const std::uint64_t* to_row = nullptr; // [p]: row of the window of p
  float* own = nullptr; // where the rows of this rank go
  unsigned* finished = nullptr; // rows of each rank; zero before
  std::uint64_t* failed = nullptr; // counts
  std::uint64_t signals = 0; // how many of each peer have come when the kernel ends
};

void launch_rows(const Rows& rows, CUstream_st* stream);
// The same, and the rows of a rank leave when the last of them is finished.
void launch_rows_and_put(const Rows& rows, const Posting& posting, CUstream_st* stream);
// Row i goes back to row order[i].
void launch_scatter(const Rows& rows, const float* from, float* tokens, CUstream_st* stream);
// Token t of all has values (7 t + column) % kValues; this rank's begin with first_token.
void launch_fill(const Rows& rows, std::uint64_t first_token, float* tokens, CUstream_st* stream);
// Counts values other than those of the token plus added[token].
void launch_check(
    const Rows& rows, std::uint64_t first_token, const float* tokens, const float* added,
    unsigned long long* wrong, CUstream_st* stream);

} // namespace ferry::moe
