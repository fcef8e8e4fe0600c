// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace ferry::core {

// A block whose owner has left may still be read by slower peers. It waits here until all `peers`
// have said so in BlockHeader::departed; each call gives back what is free by now.
void bury_block(std::byte* block, std::size_t peers);
void reap_blocks();

} // namespace ferry::core
