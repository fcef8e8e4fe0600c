// SPDX-License-Identifier: MIT
#include "lib/amd/patience.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace ferry::amd {

void Patience::sleep(double seconds, bool (*ready)(void*), void* look) {
  constexpr double kLongest = 1e-4;
  if (!ready(look)) {
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, kLongest)));
  }
}

} // namespace ferry::amd
