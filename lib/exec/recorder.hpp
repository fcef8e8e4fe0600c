// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/schedule/collective.hpp"

namespace ferry::core {

// The operations that a rank began last on a communicator, in memory that its peers see. Only the
// owner writes, a few plain stores a call; others read while they wait for it, and may meet an
// entry half written: it is then left out.
class Recorder {
 public:
  // A call of a lane by its number, or (persistent) a start of a handle.
  void note(const CollectiveDesc& desc, std::uint64_t call);

  // "call 41 broadcast of 64 bytes from rank 1, start of a persistent alltoall of 8 bytes", the
  // newest last; empty when there was none.
  [[nodiscard]] std::string last(std::size_t most) const;
  // Of the newest one; to tell whether two ranks are at the same place.
  [[nodiscard]] std::string newest() const { return last(1); }

 private:
  struct Entry {
    std::atomic<std::uint64_t> number; // from 1; written first as 0, last with release
    std::atomic<std::uint64_t> call; // 0: a persistent start
    std::atomic<std::uint64_t> bytes;
    std::atomic<std::uint64_t> what; // root << 8 | kIrregular | operation
  };
  static constexpr std::size_t kEntries = 8;

  [[nodiscard]] std::string print(std::uint64_t number) const;

  alignas(64) std::array<Entry, kEntries> entries_;
  std::atomic<std::uint64_t> count_;
};

} // namespace ferry::core
