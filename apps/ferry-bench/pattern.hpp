// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ferry::bench {

// Stands for "any receiver" where all get the same block.
inline constexpr int kEveryone = -1;

// Which block it is. Two different ones differ in about 255 of 256 bytes.
struct Block {
  std::uint64_t seed = 0;
  std::uint64_t iteration = 0;
  int sender = 0;
  int receiver = 0;
};

// The data of a block: byte i is a function of (seed, iteration, sender, receiver, i).
void write_data(std::span<std::byte> bytes, const Block& block);

// What lies where the data of block is due: it changes with the iteration and differs from the data
// in every byte, so that a byte that never came is always seen.
void write_poison(std::span<std::byte> bytes, const Block& block);

// How many bytes are not the data of block.
[[nodiscard]] std::uint64_t count_wrong(std::span<const std::byte> bytes, const Block& block);

} // namespace ferry::bench
