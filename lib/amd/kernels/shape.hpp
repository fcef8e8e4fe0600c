// SPDX-License-Identifier: MIT
#pragma once

// Which kernel carries an exchange of the compute path, and with what grid. All ranks must come to
// the same answer, so all ask with the same numbers.

#include <cstdint>

#include "lib/amd/kernels/kernels.hpp"

namespace ferry::amd {

struct KernelShape {
  const char* kernel = nullptr; // null: no kernel can carry it
  std::uint32_t blocks = 0; // workgroups of the grid
  std::uint32_t lanes = 0; // of a workgroup
  std::uint32_t parts = 0; // WideArgs::parts
};

struct KernelShapeRow {
  std::uint64_t up_to_bytes; // the longest block of any pair
  const char* kernel;
  std::uint32_t lanes;
  std::uint32_t parts; // workgroups for each peer
  const char* source;
};

inline constexpr const char* kNotMeasured = "start value, not measured";
inline constexpr KernelShapeRow kKernelShapes[] = {
    {2 << 10, kLowLatencyKernel, 256, 1, kNotMeasured},
    {32 << 10, kLowLatencyKernel, kMaxLanes, 1, kNotMeasured},
    {256 << 10, kWideKernel, kMaxLanes, 2, kNotMeasured},
    {4 << 20, kWideKernel, kMaxLanes, 4, kNotMeasured},
    {UINT64_MAX, kWideKernel, kMaxLanes, 8, kNotMeasured},
};

// longest_block: of any pair of the team; compute_units: of the device that has fewest. Workgroups
// wait for those of other ranks, so all must be resident: one on each compute unit always is.
KernelShape kernel_shape(
    std::uint64_t longest_block, std::uint32_t ranks, std::uint32_t compute_units);

} // namespace ferry::amd
