// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace ferry::tune {

// The ways of ferry/device/copy.hpp to move bytes.
enum class CopyWay { plain, rep, stream };

// Seconds of one copy of each size, on as many cores at once as a pair of ranks uses. With
// `read_after` another core then reads what was written, and that counts too. The best of `rounds`.
[[nodiscard]] std::vector<double> time_copies(
    CopyWay way, std::span<const std::size_t> sizes, bool read_after, int rounds);

} // namespace ferry::tune
