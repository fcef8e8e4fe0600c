// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "device/start.hpp"

struct CUstream_st;

namespace ferry::bench {

// One thread makes the starts of the handle, awaiting each before the next. *nanoseconds gets the
// time of all, *given_up counts waits that did not end. Pinned memory.
struct Releases {
  device::StartHandle starts;
  std::uint64_t* nanoseconds;
  std::uint64_t* given_up;
};
void launch_releases(const Releases& releases, CUstream_st* stream);
// Loaded now: a load behind armed starts would wait for them.
void load_releases();

} // namespace ferry::bench
