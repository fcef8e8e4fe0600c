// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <vector>

#include "lib/amd/devices.hpp"
#include "lib/amd/kernel_plan.hpp"
#include "lib/amd/program.hpp"
#include "lib/exec/device_backend.hpp"

namespace ferry::amd {

struct KernelSetUpInput {
  Devices& devices;
  core::DeviceTeam& team;
  const Job& job;
  Buffers buffers;
  std::vector<int> nodes; // of each rank's GPU
};

// A plan, or why there is none, alike on all ranks.
struct KernelSetUpResult {
  std::unique_ptr<KernelPlan> plan;
  core::Status status;
};

// Whether kernels can carry the job: empty, or why not. Not collective; ranks may differ.
[[nodiscard]] std::string kernels_refuse(
    const Devices& devices, const Job& job, int node, int ranks);

// Collective: memory that peers map, words, and the table that the kernel reads.
[[nodiscard]] KernelSetUpResult set_up_kernels(const KernelSetUpInput& input);

} // namespace ferry::amd
