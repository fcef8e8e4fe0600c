// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "lib/schedule/collective.hpp"

namespace ferry::nvidia {

// Bytes side by side in memory of this rank.
struct Piece {
  char* at = nullptr; // null: none
  std::uint64_t bytes = 0;
};

// Where the blocks of a call lie on this rank: a pure function of the description, whose blocks
// have no gaps inside.
struct Blocks {
  Blocks(const core::CollectiveDesc& desc, int rank, int ranks);

  [[nodiscard]] Piece source(int peer) const; // what goes there
  [[nodiscard]] Piece result(int peer) const; // where goes what comes from there
  [[nodiscard]] Piece sending() const; // from the first byte that is used to the last
  [[nodiscard]] Piece receiving() const;
  [[nodiscard]] bool keeps_own() const; // a block is copied on this rank
  // Blocks leave from where others arrive.
  [[nodiscard]] bool trades_places() const {
    return desc.in_place && desc.operation == core::Operation::alltoall;
  }
  // A rank may send to another that sends nothing back, so that it cannot tell from what arrives
  // how far the other is.
  [[nodiscard]] bool one_sided() const {
    return desc.operation == core::Operation::broadcast || desc.irregular != nullptr;
  }

  core::CollectiveDesc desc;
  int rank;
  int ranks;
};

// Who sends how much to whom, and where it lands; alike on all ranks.
class Traffic {
 public:
  // What one rank tells of its side of a peer. Sent as bytes.
  struct Side {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t offset = 0; // of what is received, in the receive buffer
  };

  Traffic() = default;
  explicit Traffic(int ranks) : ranks_(static_cast<std::size_t>(ranks)), sides_(ranks_ * ranks_) {}

  [[nodiscard]] static std::vector<Side> of(const Blocks& blocks);
  [[nodiscard]] Side* data() { return sides_.data(); }
  [[nodiscard]] const Side& side(int rank, int peer) const {
    return sides_[static_cast<std::size_t>(rank) * ranks_ + static_cast<std::size_t>(peer)];
  }
  [[nodiscard]] std::uint64_t largest() const; // block between two ranks
  // Throws Failure(mismatch) alike on all ranks where a block is not as long as its room.
  void check() const;

 private:
  std::size_t ranks_ = 0;
  std::vector<Side> sides_;
};

} // namespace ferry::nvidia
