// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/schedule/collective.hpp"

namespace ferry::core {

// Which regular calls of middle size go straight into the receive buffers, although a call begins
// before anybody knows the peers' memory: those whose last one met mapped receive buffers on all
// ranks. Each rank of an alltoall or allgather hears of the buffers of every other, with the data
// or with the offers, and counts only calls that ended well on it: then they did so on all ranks,
// for these have sent each other the same call. So all come to the same answer for the next call.
class Habits {
 public:
  [[nodiscard]] bool direct(Operation operation, std::uint64_t bytes) const {
    const Entry& entry = entries_[place(operation, bytes)];
    return entry.direct && entry.operation == operation && entry.bytes == bytes;
  }
  void learn(Operation operation, std::uint64_t bytes, bool all_mapped) {
    entries_[place(operation, bytes)] = {bytes, operation, all_mapped};
  }

 private:
  struct Entry {
    std::uint64_t bytes = 0;
    Operation operation = Operation::alltoall;
    bool direct = false;
  };
  static constexpr std::size_t kEntries = 32; // a power of two; who meets in one forgets

  static std::size_t place(Operation operation, std::uint64_t bytes) {
    constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15u;
    const std::uint64_t mixed = (bytes * 2 + (operation == Operation::allgather ? 1 : 0)) * kMix;
    return static_cast<std::size_t>(mixed >> 59);
  }

  std::array<Entry, kEntries> entries_;
};

} // namespace ferry::core
