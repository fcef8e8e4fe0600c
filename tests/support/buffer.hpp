// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#include <ferry/ferry.h>

#include "pattern.hpp"
#include "world.hpp"

namespace ferry::test {

enum class Memory { heap, ferry, interior, mixed };
inline constexpr int kMemories = 4;

inline const char* name_of(Memory kind) {
  switch (kind) {
    case Memory::heap:
      return "heap";
    case Memory::ferry:
      return "ferry";
    case Memory::interior:
      return "interior";
    case Memory::mixed:
      break;
  }
  return "mixed";
}

inline constexpr std::size_t kGuard = 64;
inline constexpr Stream kCanary{0xca9a51ULL, -7, -9};

// Bytes with a canary before and behind them, in memory of somebody else.
class View {
 public:
  View(unsigned char* data, std::size_t bytes) : data_(data), bytes_(bytes) {
    fill(data_ - kGuard, kGuard, kCanary);
    fill(data_ + bytes_, kGuard, kCanary);
  }
  [[nodiscard]] unsigned char* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool canaries_intact() const {
    return !first_difference(data_ - kGuard, kGuard, kCanary) &&
           !first_difference(data_ + bytes_, kGuard, kCanary);
  }

 private:
  unsigned char* data_;
  std::size_t bytes_;
};

// One block of malloc and one of ferry_alloc, each with room for capacity bytes, canaries and an
// odd offset. Views of one arena overlap: take one at a time.
class Arena {
 public:
  explicit Arena(std::size_t capacity)
      : capacity_(capacity), heap_(std::malloc(capacity + kSlack)) {
    if (heap_ == nullptr || ferry_alloc(static_cast<MPI_Aint>(capacity + kSlack), &ferry_) != 0) {
      std::free(heap_);
      throw std::bad_alloc();
    }
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    std::free(heap_);
    ferry_free(ferry_);
  }

  [[nodiscard]] View view(Memory kind, std::size_t bytes) const {
    if (bytes > capacity_) throw std::bad_alloc();
    if (kind == Memory::mixed) kind = static_cast<Memory>(world().rank % (kMemories - 1));
    auto* base = static_cast<unsigned char*>(kind == Memory::heap ? heap_ : ferry_);
    return {base + kGuard + (kind == Memory::interior ? kOddOffset : 0), bytes};
  }

 private:
  static constexpr std::size_t kOddOffset = 4099;
  static constexpr std::size_t kSlack = 2 * kGuard + kOddOffset;

  std::size_t capacity_;
  void* heap_;
  void* ferry_ = nullptr;
};

} // namespace ferry::test
