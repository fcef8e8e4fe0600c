// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/pattern.hpp"

#include <algorithm>
#include <cstring>

namespace ferry::bench {
namespace {

// The finaliser of splitmix64: every bit of x moves every bit of the result.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;

std::uint64_t key_of(const Block& block) {
  std::uint64_t key = mix(block.seed + kStep);
  key = mix(key ^ (block.iteration + 2 * kStep));
  key = mix(key ^ (static_cast<std::uint32_t>(block.sender) + 3 * kStep));
  return mix(key ^ (static_cast<std::uint32_t>(block.receiver) + 4 * kStep));
}

// Calls visit(offset, bytes of this word, word) for each 8 bytes of data; the last may be fewer.
template <class Visit>
void for_each_word(std::size_t size, const Block& block, Visit visit) {
  std::uint64_t state = key_of(block);
  for (std::size_t at = 0; at < size; at += sizeof state) {
    visit(at, std::min(sizeof state, size - at), mix(state));
    state += kStep;
  }
}

} // namespace

void write_data(std::span<std::byte> bytes, const Block& block) {
  for_each_word(bytes.size(), block, [&](std::size_t at, std::size_t n, std::uint64_t word) {
    std::memcpy(bytes.data() + at, &word, n);
  });
}

void write_poison(std::span<std::byte> bytes, const Block& block) {
  for_each_word(bytes.size(), block, [&](std::size_t at, std::size_t n, std::uint64_t word) {
    const std::uint64_t opposite = ~word;
    std::memcpy(bytes.data() + at, &opposite, n);
  });
}

std::uint64_t count_wrong(std::span<const std::byte> bytes, const Block& block) {
  std::uint64_t wrong = 0;
  for_each_word(bytes.size(), block, [&](std::size_t at, std::size_t n, std::uint64_t word) {
    std::uint64_t seen = word;
    std::memcpy(&seen, bytes.data() + at, n);
    if (seen == word) return;
    for (std::uint64_t differ = seen ^ word; differ != 0; differ >>= 8) {
      wrong += (differ & 0xff) != 0 ? 1 : 0;
    }
  });
  return wrong;
}

} // namespace ferry::bench
