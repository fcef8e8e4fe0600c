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
    blocks_.push_back(
        team_.member(rank).heap->base() + all[static_cast<std::size_t>(rank)] +
        sizeof(BlockHeader));
  }
}

SharedDeviceTeam::~SharedDeviceTeam() {
  for (int rank = 0; rank < static_cast<int>(blocks_.size()); ++rank) {
    if (rank == team_.rank()) continue;
    // Pairs with the acquire in reap_blocks().
    header_of(block(rank) - sizeof(BlockHeader)).departed.fetch_add(1, std::memory_order_release);
  }
  if (blocks_.empty()) return;
  bury_block(block(team_.rank()) - sizeof(BlockHeader), static_cast<std::size_t>(ranks() - 1));
}

} // namespace ferry::core
