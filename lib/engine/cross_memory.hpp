// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace ferry::core {

// Cross-memory attach: one copy between this process and process pid. Both return 0 or an errno;
// after an error part of the bytes may have been copied.
[[nodiscard]] int read_process(
    int pid, void* local, std::uint64_t remote, std::uint64_t bytes) noexcept;
[[nodiscard]] int write_process(
    int pid, std::uint64_t remote, const void* local, std::uint64_t bytes) noexcept;

} // namespace ferry::core
