// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>

namespace ferry::core {

// Seconds on the steady clock.
inline double now_seconds() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace ferry::core
