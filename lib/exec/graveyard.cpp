// SPDX-License-Identifier: MIT
#include "lib/exec/graveyard.hpp"

#include <mutex>
#include <vector>

#include "lib/exec/block.hpp"
#include "lib/memory/heap.hpp"

namespace ferry::core {
namespace {

struct Grave {
  std::byte* block;
  std::size_t peers;
};

struct Graveyard {
  std::mutex mutex;
  std::vector<Grave> graves;
};

Graveyard& graveyard() {
  static auto* const yard = new Graveyard; // used until the process ends
  return *yard;
}

} // namespace

void bury_block(std::byte* block, std::size_t peers) {
  {
    const std::lock_guard lock(graveyard().mutex);
    graveyard().graves.push_back({block, peers});
  }
  reap_blocks();
}

void reap_blocks() {
  const std::lock_guard lock(graveyard().mutex);
  std::erase_if(graveyard().graves, [](const Grave& grave) {
    // Pairs with the release of the peers that departed.
    if (header_of(grave.block).departed.load(std::memory_order_acquire) < grave.peers) return false;
    return Heap::instance().release(grave.block);
  });
}

} // namespace ferry::core
