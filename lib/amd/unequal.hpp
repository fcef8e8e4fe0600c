// SPDX-License-Identifier: MIT
#pragma once

// Blocks of which only the two ranks of a pair know the size: the v and w forms, gather, scatter.

#include <cstdint>
#include <vector>

#include "lib/exec/device_backend.hpp"
#include "lib/schedule/collective.hpp"

namespace ferry::amd {

// Bytes of the buffers that a call reads and writes on one rank, and the buffers: null where there
// is none.
struct Buffers {
  const void* send = nullptr;
  std::uint64_t send_bytes = 0;
  void* recv = nullptr;
  std::uint64_t recv_bytes = 0;
};

// What a rank and one other exchange. Places count from Buffers::send and Buffers::recv.
struct PairBlocks {
  std::uint64_t send_bytes = 0;
  std::uint64_t recv_bytes = 0;
  std::uint64_t send_at = 0;
  std::uint64_t recv_at = 0;
  std::uint64_t their_recv_at = 0; // in the peer's buffer
  bool operator==(const PairBlocks&) const = default;
};

struct UnequalBlocks {
  Buffers buffers;
  std::vector<PairBlocks> pairs; // of each rank; the places at peers are not known yet
};

// Throws Failure for blocks with gaps.
[[nodiscard]] UnequalBlocks unequal_blocks(const core::CollectiveDesc& desc, int rank);

// Collective: fills in where blocks lie at the peers. Throws Failure, alike on all ranks, when
// sizes do not match.
void meet(core::DeviceTeam& team, std::vector<PairBlocks>& pairs);

} // namespace ferry::amd
