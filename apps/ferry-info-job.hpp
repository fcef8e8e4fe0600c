// SPDX-License-Identifier: MIT
#pragma once

// ferry-info --job: each rank of the job and what it has, by rank, then how they reach each other.
// Rank 0 prints. Returns the exit status.
[[nodiscard]] int describe_job();
