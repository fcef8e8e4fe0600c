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
// Of an exchange: what concerns `peer`.
[[nodiscard]] Offer make_pair_offer(const CollectiveDesc& desc, int peer);

// An error when two ranks' calls do not fit together.
[[nodiscard]] Status compare_offers(int rank, const Offer& theirs, const Offer& ours);

[[nodiscard]] BufferFacts facts_of(const Offer& offer);
[[nodiscard]] std::vector<BufferFacts> facts_of(const std::vector<Offer>& offers);
// Of an exchange: `theirs` as told to this rank, without facts when it is empty.
[[nodiscard]] std::vector<PairPlan> pairs_of(
    const CollectiveDesc& desc, const Topology& topology, const std::vector<Offer>& theirs);

// Everyone's addresses as the engine of this rank sees them: mapped memory by pointer, private
// memory of others (cross-memory attach) by a number that no pointer has. Offers of an exchange are
// those to this rank.
[[nodiscard]] AddressBook make_book(
    const Team& team, const CollectiveDesc& desc, const std::vector<Offer>& offers);

// All memory that packets of this call may touch, and nothing else.
[[nodiscard]] WindowSet make_windows(
    const Team& team, const CollectiveDesc& desc, const std::vector<Offer>& offers,
    const AddressBook& book, std::uint64_t stage_bytes);

} // namespace ferry::core
