// SPDX-License-Identifier: MIT
#include "lib/amd/kernels/shape.hpp"

#include <algorithm>
#include <string_view>

namespace ferry::amd {

KernelShape kernel_shape(
    std::uint64_t longest_block, std::uint32_t ranks, std::uint32_t compute_units) {
  const std::uint32_t peers = ranks > 1 ? ranks - 1 : 1;
  const KernelShapeRow* row = kKernelShapes;
  while (longest_block > row->up_to_bytes) ++row;
  if (std::string_view(row->kernel) == kLowLatencyKernel) {
    const std::uint32_t blocks = std::min(peers, compute_units); // a workgroup takes several peers
    return blocks == 0 ? KernelShape{} : KernelShape{row->kernel, blocks, row->lanes, 1};
  }
  const std::uint32_t parts = std::min(row->parts, compute_units / peers);
  if (parts == 0) return {};
  return {row->kernel, peers * parts, row->lanes, parts};
}

} // namespace ferry::amd
