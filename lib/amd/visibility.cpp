// SPDX-License-Identifier: MIT
#include "lib/amd/visibility.hpp"

#include <fmt/format.h>
#include <cstdlib>

namespace ferry::amd {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

constexpr const char* kLeaveUnset =
    "leave it unset on all ranks, and let each rank choose with hipSetDevice(local rank)";
constexpr const char* kSlurm =
    "give the step all GPUs of the node: srun --gpus-per-node=N --gpu-bind=none in place of "
    "--gpus-per-task or --gpu-bind, then let each rank choose with hipSetDevice(local rank)";

} // namespace

Blinds blinds_of_environment() {
  Blinds blinds;
  blinds.rocr_visible = variable("ROCR_VISIBLE_DEVICES");
  blinds.hip_visible = variable("HIP_VISIBLE_DEVICES");
  blinds.gpus_per_task = variable("SLURM_GPUS_PER_TASK");
  blinds.gpu_bind = variable("SLURM_GPU_BIND");
  blinds.slurm_job = variable("SLURM_JOB_ID");
  return blinds;
}

// Slurm sets the variables of ROCm itself, so that it is named first.
Hidden why_hidden(const PeerGpu& peer, const Blinds& blinds, bool in_topology) {
  const std::string gpu = fmt::format("GPU {} of rank {}", peer.bus_address, peer.rank);
  if (!blinds.gpus_per_task.empty()) {
    return {fmt::format("SLURM_GPUS_PER_TASK={} hides {}", blinds.gpus_per_task, gpu), kSlurm};
  }
  const bool bound = !blinds.gpu_bind.empty() && blinds.gpu_bind != "none";
  if (bound) return {fmt::format("SLURM_GPU_BIND={} hides {}", blinds.gpu_bind, gpu), kSlurm};
  if (!in_topology) {
    return {
        fmt::format("a container or cgroup hides {}", gpu),
        blinds.slurm_job.empty()
            ? "give each process all GPUs that the job uses, with /dev/kfd and "
              "all of /dev/dri"
            : kSlurm};
  }
  if (!blinds.rocr_visible.empty()) {
    return {fmt::format("ROCR_VISIBLE_DEVICES={} hides {}", blinds.rocr_visible, gpu), kLeaveUnset};
  }
  if (!blinds.hip_visible.empty()) {
    return {fmt::format("HIP_VISIBLE_DEVICES={} hides {}", blinds.hip_visible, gpu), kLeaveUnset};
  }
  return {
      fmt::format("the ROCm runtime does not show {}", gpu),
      "see whether rocminfo lists it in the environment of this rank"};
}

} // namespace ferry::amd
