// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "lib/schedule/collective.hpp"

namespace ferry::amd {

// Up to which size a kernel is best with words that name their start, and from which size on copy
// engines carry a collective faster than kernels do; in between a kernel copies whole blocks.
struct SelectionRow {
  core::Operation operation;
  std::uint64_t words_to; // bytes of a block
  std::uint64_t sdma_from; // bytes of a block: to each peer, of each rank, of the message
  const char* source;
};

// Start values, measured by others on 8 x MI355X and published with RCCL; none was measured with
// Ferry. A measured table takes their place. The 32 KiB of the words are a guess.
inline constexpr SelectionRow kSelection[] = {
    {core::Operation::alltoall, 32 << 10, 8 << 20,
     "RCCL, NCCL_GIN_A2A_SDMA_MIN_BYTES (rocm-systems #10386)"},
    {core::Operation::allgather, 32 << 10, 64 << 10,
     "RCCL tests, SDMA from 64 KiB a rank (#10930)"},
    // Its tiers: words with flags to 2 KiB, wide copies to 256 KiB, then puts from the root;
    // scatter and allgather from 2 MiB and a ring from 32 MiB, which Ferry has not.
    {core::Operation::broadcast, 2 << 10, 256 << 10, "RCCL tests, flat put above 256 KiB (#11142)"},
};

[[nodiscard]] std::uint64_t longest_words(core::Operation operation);

struct Selection {
  bool kernels = false; // else copy engines
  std::string why;
};

// The same on all ranks: from what they know alike.
[[nodiscard]] Selection select_path(
    core::Operation operation, std::uint64_t block_bytes, bool kernels_work);

} // namespace ferry::amd
