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
  double patience = 0; // seconds until the kernel gives up; 0: no limit
};

// A plan, or why there is none, alike on all ranks.
struct KernelSetUpResult {
  std::unique_ptr<KernelPlan> plan;
  core::Status status;
};

// Whether kernels can carry the job: empty, or why not. Not collective; ranks may differ.
[[nodiscard]] std::string kernels_refuse(
    const Devices& devices, const Job& job, int node, int ranks);

// The kernel that carries the job.
[[nodiscard]] const char* kernel_of(const KernelSetUpInput& input);

// Collective: memory that peers map, words, and the table that the kernel reads.
[[nodiscard]] KernelSetUpResult set_up_kernels(const KernelSetUpInput& input);

} // namespace ferry::amd
