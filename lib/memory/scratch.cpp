// SPDX-License-Identifier: MIT
#include "lib/memory/scratch.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "lib/base/error.hpp"
#include "lib/memory/heap.hpp"

namespace ferry::core {
namespace {

constexpr std::uint64_t kWorthSharing = 32 * 1024; // smaller pieces go through slots anyway
constexpr std::size_t kKept = 4;

struct Piece {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

struct Pool {
  std::mutex mutex;
  std::vector<Piece> free;
};

// Never destroyed: pieces may come back while the process ends.
Pool& pool() {
  static Pool& the_pool = *new Pool;
  return the_pool;
}

// A kept piece that is large enough and not wastefully so.
std::optional<Piece> reuse(std::uint64_t bytes) {
  const std::lock_guard lock(pool().mutex);
  auto& free = pool().free;
  const auto fits = std::find_if(free.begin(), free.end(), [&](const Piece& piece) {
    return piece.bytes >= bytes && piece.bytes / 4 <= bytes;
  });
  if (fits == free.end()) return std::nullopt;
  const Piece piece = *fits;
  free.erase(fits);
  return piece;
}

void give_back(Piece piece) {
  {
    const std::lock_guard lock(pool().mutex);
    pool().free.insert(pool().free.begin(), piece);
    if (pool().free.size() <= kKept) return;
    piece = pool().free.back();
    pool().free.pop_back();
  }
  Heap::instance().release(piece.data);
}

} // namespace

Scratch::Scratch(std::uint64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes >= kWorthSharing) {
    if (const auto kept = reuse(bytes)) {
      data_ = kept->data;
      bytes_ = kept->bytes;
      shared_ = true;
      return;
    }
    try {
      data_ = static_cast<std::byte*>(Heap::instance().allocate(bytes));
      shared_ = true;
      return;
    } catch (const Failure&) { // private memory is as right
    }
  }
  data_ = static_cast<std::byte*>(std::malloc(bytes));
  if (data_ == nullptr) throw std::bad_alloc();
}

Scratch::~Scratch() {
  if (shared_) {
    give_back({data_, bytes_});
  } else {
    std::free(data_);
  }
}

} // namespace ferry::core
