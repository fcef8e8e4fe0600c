// SPDX-License-Identifier: MIT
#pragma once

namespace ferry::tune {

inline constexpr const char* kGpuJob = "--gpu-job"; // FILE ITERATIONS SIZES, for ferry-tune alone

// One rank of a job that ferry-tune starts: collectives of each size on memory of GPUs, by the
// table in effect; rank 0 writes what they took, and how they went, as JSON. The exit status.
[[nodiscard]] int run_gpu_job(int argc, char** argv);

} // namespace ferry::tune
