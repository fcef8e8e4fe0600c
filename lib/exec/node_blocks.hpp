// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/error.hpp"
#include "lib/exec/node_run.hpp"
#include "lib/schedule/collective.hpp"

namespace ferry::core {

// The blocks of a call whose sizes all ranks know.
class DescBlocks final : public NodeBlocks {
 public:
  DescBlocks(const CollectiveDesc& desc, int rank) : desc_(desc), rank_(rank) {}
  void load(int rank, std::uint64_t skip, std::byte* to, std::uint64_t bytes) const override;
  void store(int rank, std::uint64_t skip, const std::byte* from, std::uint64_t bytes) override;

 private:
  const CollectiveDesc& desc_; // outlives this
  int rank_;
};

// Head of a block that goes in a frame of a size that all ranks know.
struct BlockFrame {
  std::uint32_t mark; // another call of another rank has other bytes here
  std::uint32_t bytes; // if it is in the frame
  std::uint64_t longest; // of all blocks that its sender has; beyond the frame, none is in one
};

// The blocks of an irregular alltoall, of which a rank knows its own only. Frames of all ranks
// reach every rank, so that all of them know afterwards how long the longest block of all is, and
// whether every block was in its frame.
class FramedBlocks final : public NodeBlocks {
 public:
  FramedBlocks(const CollectiveDesc& desc, int rank, int ranks, std::uint64_t capacity);
  [[nodiscard]] static std::uint64_t frame_bytes(std::uint64_t capacity) {
    return sizeof(BlockFrame) + (capacity + 7) / 8 * 8;
  }
  void load(int rank, std::uint64_t skip, std::byte* to, std::uint64_t bytes) const override;
  void store(int rank, std::uint64_t skip, const std::byte* from, std::uint64_t bytes) override;
  // Of all ranks, once all frames have been stored; alike on all of them.
  [[nodiscard]] bool too_long() const { return longest_ > capacity_; }
  [[nodiscard]] std::uint64_t longest() const { return longest_; }
  // A block of another size than its receiver expects, or no such block at all.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  void note_misfit(const std::string& cause);

  const CollectiveDesc& desc_; // outlives this
  int rank_;
  std::uint64_t capacity_;
  std::uint64_t own_longest_ = 0;
  std::uint64_t longest_ = 0;
  Status status_;
};

} // namespace ferry::core
