// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::core {

// Words of 8 bytes, 16 bytes from one to the next: one component of pairs of doubles, the commonest
// stride there is. The vector unit picks them; bytes between them are neither read nor written.
// Returns how many were moved from the first one on: all but the last few, none where the processor
// cannot.
std::uint64_t pack_every_other(const std::byte* data, std::uint64_t words, std::byte* packed);
std::uint64_t unpack_every_other(std::byte* data, std::uint64_t words, const std::byte* packed);

} // namespace ferry::core
