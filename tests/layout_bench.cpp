// SPDX-License-Identifier: MIT
// Packing of strided data against the copy of as many contiguous bytes: ratios of times of one run,
// no verdict. Every figure is the least of many rounds in which the kinds take turns.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "lib/memory/layout.hpp"
#include "lib/memory/type_map.hpp"

namespace core = ferry::core;

namespace {

constexpr int kRounds = 25;
constexpr double kRoundSeconds = 400e-6;

struct Kind {
  const char* name;
  std::uint64_t piece;
  std::int64_t stride;
};

constexpr Kind kKinds[] = {
    {"contiguous", 64, 64},         {"double, stride 2", 8, 16},    {"double, stride 3", 8, 24},
    {"double, row of 100", 8, 800}, {"float, stride 2", 4, 8},      {"3 floats of 4", 12, 16},
    {"64 bytes of 128", 64, 128},   {"200 bytes of 256", 200, 256}, {"4 KiB of 8 KiB", 4096, 8192},
};
constexpr std::size_t kKindCount = std::size(kKinds);
constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kWidest = 100; // extent over bytes of the widest kind

struct Times {
  double pack = 1e9;
  double unpack = 1e9;
};

core::Layout layout_of(const Kind& kind, std::uint64_t bytes) {
  const std::uint64_t pieces = std::max<std::uint64_t>(bytes / kind.piece, 1);
  const std::uint64_t data = pieces * kind.piece;
  auto map = core::Pieces(kind.piece).repeated(pieces, kind.stride).map();
  if (map->runs.front().repeats == 1) return core::contiguous_layout(1, data);
  return {1, data, 0, 0, map};
}

template <class Call>
double seconds_of(int calls, const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
}

void measure(std::uint64_t bytes, std::vector<std::byte>& data, std::vector<std::byte>& packed) {
  Times times[kKindCount];
  core::Layout layouts[kKindCount];
  for (std::size_t k = 0; k < kKindCount; ++k) layouts[k] = layout_of(kKinds[k], bytes);
  const double once = seconds_of(1, [&] { std::memcpy(packed.data(), data.data(), bytes); });
  const int calls = std::clamp(static_cast<int>(kRoundSeconds / std::max(once, 1e-8)), 1, 20000);
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t k = 0; k < kKindCount; ++k) {
      const core::Layout& layout = layouts[k];
      const auto pack = [&] { core::pack(layout, data.data(), 0, layout.bytes(), packed.data()); };
      const auto unpack = [&] {
        core::unpack(layout, data.data(), 0, layout.bytes(), packed.data());
      };
      // The same bytes for all, also where the last piece does not fit.
      const double share = static_cast<double>(bytes) / static_cast<double>(layout.bytes());
      times[k].pack = std::min(times[k].pack, share * seconds_of(calls, pack));
      times[k].unpack = std::min(times[k].unpack, share * seconds_of(calls, unpack));
    }
  }
  for (std::size_t k = 0; k < kKindCount; ++k) {
    std::printf(
        "%10llu  %-20s  %9.3f %5.2f   %9.3f %5.2f\n", static_cast<unsigned long long>(bytes),
        kKinds[k].name, times[k].pack * 1e6, times[k].pack / times[0].pack, times[k].unpack * 1e6,
        times[k].unpack / times[0].unpack);
  }
}

} // namespace

int main() {
  std::vector<std::byte> data(kMostBytes * kWidest + 4096, std::byte{1});
  std::vector<std::byte> packed(kMostBytes, std::byte{2});
  std::printf("     bytes  kind                    pack us ratio   unpack us ratio\n");
  for (std::uint64_t bytes = 1024; bytes <= kMostBytes; bytes *= 8) measure(bytes, data, packed);
  return 0;
}
