// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "collectives/planner.hpp"
#include "lib/engine/window.hpp"
#include "lib/exec/block.hpp"
#include "lib/exec/team.hpp"

namespace ferry::core {

// The call and buffers of this rank, without stage and block.
[[nodiscard]] Offer make_offer(const CollectiveDesc& desc, const Topology& topology);

// An error when two ranks' calls do not fit together.
[[nodiscard]] Status compare_offers(int rank, const Offer& theirs, const Offer& ours);

[[nodiscard]] std::vector<BufferFacts> facts_of(const std::vector<Offer>& offers);

// Bytes of the buffers that a call reads and writes on one rank.
struct BufferSizes {
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
};
[[nodiscard]] BufferSizes buffer_sizes(const CollectiveDesc& desc, int rank, int ranks);

// Everyone's addresses as the engine of this rank sees them: mapped memory by pointer, private
// memory of others (cross-memory attach) by a number that no pointer has.
[[nodiscard]] AddressBook make_book(
    const Team& team, const CollectiveDesc& desc, const std::vector<Offer>& offers);

// All memory that packets of this call may touch, and nothing else.
[[nodiscard]] WindowSet make_windows(
    const Team& team, const CollectiveDesc& desc, const std::vector<Offer>& offers,
    const AddressBook& book, std::uint64_t stage_bytes);

} // namespace ferry::core
