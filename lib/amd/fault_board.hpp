// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "device/platform.hpp"
#include "lib/base/error.hpp"

namespace ferry::amd {

// What has failed on a rank, in memory of the host that all ranks of a plan see: whoever waits for
// that rank's copies would wait in vain. Zero before; one rank writes it, once.
struct FaultBoard {
  std::uint64_t told = 0;
  std::int32_t kind = 0;
  char cause[640] = {};
  char remedy[240] = {};

  void tell(const core::Status& status) {
    if (device::load_relaxed(&told) != 0) return;
    kind = static_cast<std::int32_t>(status.kind);
    std::memcpy(cause, status.cause.data(), std::min(status.cause.size(), sizeof cause - 1));
    std::memcpy(remedy, status.remedy.data(), std::min(status.remedy.size(), sizeof remedy - 1));
    device::store_release(&told, std::uint64_t{1}); // pairs with the acquire in read()
  }
  // Fine as long as nothing was told.
  [[nodiscard]] core::Status read() const {
    if (device::load_acquire(&told) == 0) return {};
    return {static_cast<core::ErrorKind>(kind), cause, remedy};
  }
};

inline constexpr std::size_t kFaultBoardBytes = 1024; // of each rank
static_assert(sizeof(FaultBoard) <= kFaultBoardBytes);

} // namespace ferry::amd
