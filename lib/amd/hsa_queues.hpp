// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "lib/amd/queue.hpp"
#include "lib/amd/runtime.hpp"

namespace ferry::amd {

// Rings whose packets the host carries out: copies by the copy engines, through the ROCm runtime,
// polls and signals by itself. Whoever waits moves them on.
[[nodiscard]] std::unique_ptr<QueueProvider> make_hsa_queues(const Runtime& runtime);

} // namespace ferry::amd
