// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

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
  std::uint64_t bytes;
  std::uint64_t too_long; // not 0: some block that its sender has does not fit into a frame
};

// The blocks of an irregular alltoall, of which a rank knows its own only. Frames of all ranks
// reach every rank, so that all of them know afterwards whether every block was in its frame.
class FramedBlocks final : public NodeBlocks {
 public:
  FramedBlocks(const CollectiveDesc& desc, int rank, int ranks, std::uint64_t capacity);
  [[nodiscard]] static std::uint64_t frame_bytes(std::uint64_t capacity) {
    return sizeof(BlockFrame) + (capacity + 7) / 8 * 8;
  }
  void load(int rank, std::uint64_t skip, std::byte* to, std::uint64_t bytes) const override;
  void store(int rank, std::uint64_t skip, const std::byte* from, std::uint64_t bytes) override;
  // Of all ranks, once all frames have been stored; alike on all of them.
  [[nodiscard]] bool too_long() const { return too_long_; }
  // A block of another size than its receiver expects.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  const CollectiveDesc& desc_; // outlives this
  int rank_;
  std::uint64_t capacity_;
  bool own_too_long_ = false;
  bool too_long_ = false;
  Status status_;
};

} // namespace ferry::core
