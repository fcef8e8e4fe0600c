// SPDX-License-Identifier: MIT
#include "lib/amd/queue.hpp"

#include <fmt/format.h>

#include "device/platform.hpp"

namespace ferry::amd {

std::string SdmaQueue::name() const {
  if (engine_ == kAnyEngine) return fmt::format("queue on an engine of node {}", node_);
  return fmt::format("queue on engine {} of node {}", engine_, node_);
}

std::uint64_t SdmaQueue::written() const {
  return device::load_acquire(ring().wptr);
}

std::uint64_t SdmaQueue::consumed() const {
  return device::load_acquire(ring().rptr);
}

} // namespace ferry::amd
