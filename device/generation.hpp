// SPDX-License-Identifier: MIT
#pragma once

// The generations of SDMA engines whose packets Ferry knows, and the limits in which they differ.
// A device that is not in this list has no packets: nothing is guessed from a neighbour.

#include <cstddef>
#include <cstdint>

namespace ferry::device {

enum class Generation : std::uint8_t {
  gfx90a,
  gfx942,
  gfx950,
  gfx1250,
  software, // Ferry's own engine: the layout of gfx9, and the 64-bit poll
};

struct GenerationInfo {
  Generation generation;
  const char* name;
  const char* engine;
  std::uint64_t max_copy_bytes; // of one packet
  std::uint64_t max_fill_bytes;
  std::uint64_t swap_alignment; // of both addresses and the length; 0: no swap
  bool reliable_poll; // false: a poll may let the queue go on although its condition does not hold
};

inline constexpr GenerationInfo kGenerations[] = {
    {Generation::gfx90a, "gfx90a", "SDMA 4.4.0", 1u << 22, 1u << 22, 0, false},
    {Generation::gfx942, "gfx942", "SDMA 4.4.2", 1u << 30, 1u << 22, 64, true},
    {Generation::gfx950, "gfx950", "SDMA 4.4.5", 1u << 30, 1u << 22, 64, true},
    {Generation::gfx1250, "gfx1250", "OSS 7", 1u << 30, 1u << 30, 32, true},
    {Generation::software, "software", "Ferry's own", 1u << 30, 1u << 22, 1, true},
};

constexpr const GenerationInfo& generation_info(Generation generation) {
  return kGenerations[static_cast<std::size_t>(generation)];
}

// Sets of generations, one bit each.
using GenerationSet = std::uint8_t;

constexpr GenerationSet only(Generation generation) {
  return static_cast<GenerationSet>(1u << static_cast<unsigned>(generation));
}

constexpr bool contains(GenerationSet set, Generation generation) {
  return (set & only(generation)) != 0;
}

inline constexpr GenerationSet kOss7 = only(Generation::gfx1250);
inline constexpr GenerationSet kGfx9Hardware =
    only(Generation::gfx90a) | only(Generation::gfx942) | only(Generation::gfx950);
inline constexpr GenerationSet kHardware = kGfx9Hardware | kOss7;
inline constexpr GenerationSet kGfx9 = kGfx9Hardware | only(Generation::software);
inline constexpr GenerationSet kEvery = kGfx9 | kOss7;

} // namespace ferry::device
