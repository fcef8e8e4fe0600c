// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace ferry::interpose {

// Large allocations of the program from the shared heap. Nothing here throws or allocates by malloc
// but for what the heap itself needs, and that is small.
class LargeBlocks {
 public:
  // From this size on an allocation lies in shared pages. Smaller ones waste more than half a page
  // in the mean, and their messages go through slots or short stages anyway.
  static constexpr std::size_t kSmallest = std::size_t{64} << 10;
  static constexpr std::size_t kPage = 4096;

  struct Allocation {
    void* block = nullptr; // null: the C library must serve
    bool zeroed = false;
  };

  // Not before the libraries below have been initialised.
  void enable() noexcept;
  [[nodiscard]] Allocation allocate(std::size_t bytes) noexcept;
  [[nodiscard]] bool owns(const void* pointer) const noexcept {
    // Pairs with the release in open(): who sees the end sees the beginning.
    const auto* place = static_cast<const char*>(pointer);
    return place < end_.load(std::memory_order_acquire) &&
           place >= begin_.load(std::memory_order_relaxed);
  }
  // Of a block that it owns.
  [[nodiscard]] std::size_t size_of(const void* block) const noexcept;
  void release(void* block) noexcept;

 private:
  // Blocks that were freed and are kept, so that a program which allocates in a loop does not pay
  // for pages each time.
  static constexpr std::size_t kKept = 16;
  static constexpr std::size_t kMostKeptBytes = std::size_t{64} << 20;
  static constexpr std::size_t kLargestKept = kMostKeptBytes / 2;
  struct Kept {
    void* block = nullptr;
    std::size_t bytes = 0;
    std::uint64_t since = 0; // order of release
  };

  bool open() noexcept;
  [[nodiscard]] void* take_kept(std::size_t bytes) noexcept;
  // Null when the block is kept; else the one that must be given back before there is room.
  [[nodiscard]] void* keep(void* block, std::size_t bytes) noexcept;
  void give_back(void* block) noexcept;
  [[nodiscard]] std::uint64_t& size_word(const void* block) const noexcept;
  void enter_child() noexcept;

  enum class State { closed, enabled, open, failed, child };
  std::atomic<State> state_{State::closed};
  std::atomic<char*> begin_{nullptr};
  std::atomic<char*> end_{nullptr};
  std::uint64_t* sizes_ = nullptr; // of the block that begins in a page
  std::mutex mutex_; // for what follows
  Kept kept_[kKept];
  std::size_t kept_bytes_ = 0;
  std::uint64_t releases_ = 0;
};

} // namespace ferry::interpose
