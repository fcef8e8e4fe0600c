// SPDX-License-Identifier: MIT
#include "lib/amd/selection.hpp"

#include <fmt/format.h>

namespace ferry::amd {

std::uint64_t longest_words(core::Operation operation) {
  for (const SelectionRow& row : kSelection) {
    if (row.operation == operation) return row.words_to;
  }
  return 0;
}

Selection select_path(core::Operation operation, std::uint64_t block_bytes, bool kernels_work) {
  for (const SelectionRow& row : kSelection) {
    if (row.operation != operation) continue;
    if (block_bytes >= row.sdma_from) {
      return {false, fmt::format("copy engines from {} bytes on: {}", row.sdma_from, row.source)};
    }
    if (kernels_work) {
      return {true, fmt::format("kernels below {} bytes: {}", row.sdma_from, row.source)};
    }
    return {false, "kernels would be faster for this size"};
  }
  return {false, "no measured size is known"};
}

} // namespace ferry::amd
