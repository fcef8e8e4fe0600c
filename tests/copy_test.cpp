// SPDX-License-Identifier: MIT
#include "device/copy.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

namespace {

using namespace ferry::device;

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

struct Restore {
  ~Restore() { set_copy_limits({}); }
};

// Copies between buffers that are shifted against a cache line, and looks at every byte around.
void check_copy(std::size_t bytes, std::size_t to_shift, std::size_t from_shift) {
  constexpr std::size_t kMargin = 128;
  std::vector<unsigned char> from(bytes + 2 * kMargin);
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i] = static_cast<unsigned char>(i * 37 + (i >> 8));
  }
  std::vector<unsigned char> to(bytes + 2 * kMargin, 0xc9);
  std::vector<unsigned char> expected = to;
  std::copy_n(from.data() + from_shift, bytes, expected.data() + kMargin / 2 + to_shift);
  copy_bytes(to.data() + kMargin / 2 + to_shift, from.data() + from_shift, bytes);
  CAPTURE(bytes);
  CAPTURE(to_shift);
  REQUIRE(to == expected);
}

} // namespace

TEST_CASE("copy: each way moves exactly its bytes, at every size and shift") {
  const Restore restore;
  for (const CopyLimits& limits :
       {CopyLimits{kNever, kNever}, CopyLimits{0, kNever}, CopyLimits{0, 0}, CopyLimits{64, 128}}) {
    set_copy_limits(limits);
    for (std::size_t bytes = 0; bytes < 260; ++bytes) {
      for (std::size_t shift = 0; shift < 64; shift += 7) check_copy(bytes, shift, 64 - shift);
    }
    check_copy(100'003, 1, 0);
  }
}

#if defined(__x86_64__)
TEST_CASE("copy: lines past the caches, for processors with and without wide stores") {
  alignas(64) std::array<char, 256> from{};
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i);
  for (const bool wide : {false, true}) {
    if (wide && __builtin_cpu_supports("avx512f") == 0) continue;
    alignas(64) std::array<char, 256> to{};
    const auto stream = wide ? detail::stream_wide : detail::stream_narrow;
    stream(to.data(), from.data() + 1, 3);
    CHECK(std::equal(from.begin() + 1, from.begin() + 193, to.begin()));
    CHECK(std::all_of(to.begin() + 192, to.end(), [](char c) { return c == 0; }));
  }
}
#endif
