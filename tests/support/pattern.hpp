// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace ferry::test {

inline constexpr int kEveryone = -1;

// Names the bytes that one rank gives to another in one iteration.
struct Stream {
  std::uint64_t iteration = 0;
  int sender = 0;
  int receiver = kEveryone;
};

inline constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

inline constexpr std::uint64_t seed_of(Stream s) {
  const auto pair = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(s.sender)) << 32) |
                    static_cast<std::uint32_t>(s.receiver);
  return mix(mix(s.iteration + 0x9e3779b97f4a7c15ULL) ^ pair);
}

inline constexpr std::uint64_t pattern_word(std::uint64_t seed, std::size_t word) {
  return mix(seed + (word + 1) * 0x9e3779b97f4a7c15ULL);
}

// The oracle: byte number index of a stream.
inline constexpr unsigned char pattern_at(Stream s, std::size_t index) {
  return static_cast<unsigned char>(pattern_word(seed_of(s), index / 8) >> (8 * (index % 8)));
}

inline void fill(unsigned char* data, std::size_t bytes, Stream s) {
  const std::uint64_t seed = seed_of(s);
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = pattern_word(seed, i / 8);
    std::memcpy(data + i, &word, bytes - i < 8 ? bytes - i : 8);
  }
}

// Index of the first byte that is not the stream's.
inline std::optional<std::size_t> first_difference(
    const unsigned char* data, std::size_t bytes, Stream s) {
  const std::uint64_t seed = seed_of(s);
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = pattern_word(seed, i / 8);
    const std::size_t length = bytes - i < 8 ? bytes - i : 8;
    if (std::memcmp(data + i, &word, length) == 0) continue;
    for (std::size_t k = i; k < i + length; ++k) {
      if (data[k] != pattern_at(s, k)) return k;
    }
  }
  return std::nullopt;
}

// Poison of receive memory: another value each iteration, so that data of an earlier one shows.
inline void poison(unsigned char* data, std::size_t bytes, std::uint64_t iteration) {
  if (bytes > 0) std::memset(data, static_cast<int>(mix(iteration ^ 0x5ca1ab1eULL) & 0xff), bytes);
}

} // namespace ferry::test
