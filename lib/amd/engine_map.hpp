// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "lib/amd/topology.hpp"

namespace ferry::amd {

// Engines in the order of preference, and where the choice comes from.
struct EngineChoice {
  std::vector<std::uint32_t> engines; // empty: none
  std::string why;
};

// Engines that were found not to work, of one node.
using BadEngines = std::set<std::uint32_t>;

// Which engines of `from` carry copies to `to`: those that the ROCm runtime prefers (a mask, 0: it
// was not asked, or does not say), or the kernel's mask of the link, or the known map of an
// eight-GPU board, or all engines that are not the host's. The first two engines belong to host
// copies and are taken only where there are no others.
[[nodiscard]] EngineChoice engines_to(
    const Gpu& from, const Gpu& to, const BadEngines& bad = {}, std::uint32_t preferred = 0);

// For copies and signals within `gpu`.
[[nodiscard]] EngineChoice engines_to_self(const Gpu& gpu, const BadEngines& bad = {});

// Queues that the engines of this GPU hold in all, over all processes.
[[nodiscard]] std::uint32_t queue_budget(const Gpu& gpu);

} // namespace ferry::amd
