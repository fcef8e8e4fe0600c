// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "lib/amd/kfd_driver.hpp"
#include "lib/amd/queue.hpp"

namespace ferry::amd {

// Rings that SDMA engines of hardware consume, made through the kernel itself.
[[nodiscard]] std::unique_ptr<QueueProvider> make_kfd_queues(KfdDriver& driver);

} // namespace ferry::amd
