// SPDX-License-Identifier: MIT
#pragma once

#if __has_include(<cuda.h>)
#include <cstdint>

#include "lib/nvidia/descriptor.hpp"
#include "lib/nvidia/driver.hpp"

namespace ferry::nvidia {

// Allocations of the virtual memory calls, which go to other processes as POSIX descriptors. Each
// throws Failure and then leaves nothing behind.

// A descriptor of the allocation that begins at base; it must stay open until peers have it.
[[nodiscard]] Descriptor export_shareable(const Driver& driver, std::uint64_t base);

// Where an allocation of `bytes`, which `descriptor` of process `pid` stands for, lies for `device`
// from now on.
[[nodiscard]] std::uint64_t map_shareable(
    const Driver& driver, int pid, int descriptor, std::uint64_t bytes, int device);
void unmap_shareable(const Driver& driver, std::uint64_t at, std::uint64_t bytes) noexcept;

} // namespace ferry::nvidia

#endif
