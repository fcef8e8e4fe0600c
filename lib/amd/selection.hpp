// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "collectives/table.hpp"
#include "lib/schedule/collective.hpp"

namespace ferry::amd {

// Up to which block a kernel moves words that name their start.
[[nodiscard]] std::uint64_t longest_words(
    core::Operation operation, const core::TableRecord& table = core::table_record());

struct Selection {
  bool kernels = false; // else copy engines
  std::string why;
};

// The same on all ranks: from what they know alike, the table among it.
[[nodiscard]] Selection select_path(
    core::Operation operation, std::uint64_t block_bytes, bool kernels_work,
    const core::TableRecord& table = core::table_record());

} // namespace ferry::amd
