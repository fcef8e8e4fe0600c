// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace ferry::amd {

// The GPU of another rank, as that rank tells.
struct PeerGpu {
  int rank = 0;
  std::int32_t node = 0;
  std::string bus_address;
};

// What can hide a GPU from this process; looked at once. Empty: not set.
struct Blinds {
  std::string rocr_visible; // ROCR_VISIBLE_DEVICES
  std::string hip_visible; // HIP_VISIBLE_DEVICES
  std::string gpus_per_task; // SLURM_GPUS_PER_TASK
  std::string gpu_bind; // SLURM_GPU_BIND, SLURM_GPU_BIND_TYPE
  std::string slurm_job; // SLURM_JOB_ID
};
[[nodiscard]] Blinds blinds_of_environment();

// Why this process does not see that GPU, and what cures it.
struct Hidden {
  std::string cause;
  std::string remedy;
};
[[nodiscard]] Hidden why_hidden(const PeerGpu& peer, const Blinds& blinds, bool in_topology);

} // namespace ferry::amd
