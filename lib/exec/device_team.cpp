// SPDX-License-Identifier: MIT
#include "lib/exec/device_team.hpp"

#include <fmt/format.h>
#include <cstddef>

#include "lib/exec/block.hpp"
#include "lib/exec/graveyard.hpp"
#include "lib/memory/heap.hpp"

namespace ferry::core {

// In front of the memory for the backend a header counts the peers that have left.
void SharedDeviceTeam::share(std::size_t bytes) {
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t mine = kNone;
  std::byte* block = nullptr;
  try {
    block = static_cast<std::byte*>(Heap::instance().allocate(sizeof(BlockHeader) + bytes));
    mine = static_cast<std::uint64_t>(block - team_.me().heap->base());
  } catch (const Failure&) { // told to all below
  }
  std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks()));
  gather_(&mine, sizeof(mine), all.data());
  for (int rank = 0; rank < ranks(); ++rank) {
    if (all[static_cast<std::size_t>(rank)] != kNone) continue;
    if (block != nullptr) Heap::instance().release(block);
    throw Failure(
        ErrorKind::no_memory, fmt::format("rank {} has no shared memory left", rank),
        "raise the limits of /dev/shm and memory, or lower FERRY_STAGE_BYTES");
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    all_blocks_.push_back(
        team_.member(rank).heap->base() + all[static_cast<std::size_t>(rank)] +
        sizeof(BlockHeader));
  }
}

SharedDeviceTeam::~SharedDeviceTeam() {
  const auto peers = static_cast<std::size_t>(ranks());
  for (std::size_t i = 0; i < all_blocks_.size(); ++i) {
    std::byte* const begin = all_blocks_[i] - sizeof(BlockHeader);
    if (i % peers == static_cast<std::size_t>(rank())) {
      bury_block(begin, peers - 1);
    } else {
      // Pairs with the acquire in reap_blocks().
      header_of(begin).departed.fetch_add(1, std::memory_order_release);
    }
  }
}

} // namespace ferry::core
