// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ferry/ferry.h>

#include "apps/ferry-bench/device/call.hpp"

namespace ferry::bench {

struct Wanted {
  ferry_operation operation = FERRY_ALLTOALL;
  Shape shape = Shape::plain;
  bool armed = false; // started by a kernel
};

struct DeviceOptions {
  std::vector<Wanted> operations;
  std::vector<std::uint64_t> sizes;
  bool nccl = true;
  bool overlap = false; // with products, at the longest size
  int rounds = 9;
  int limit = 500; // seconds for all of it: a peer that hangs must not hold up the machine
  std::string json;
};

// Throws UsageError.
[[nodiscard]] DeviceOptions parse_device(int argc, const char* const* argv);

} // namespace ferry::bench
