// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include <mpi.h>

#include "apps/ferry-bench/device/call.hpp"
#include "apps/ferry-bench/device/gpu.hpp"

namespace ferry::bench {

struct ArmedTime {
  double us = 0; // of a start, from the kernel's store to the kernel seeing its end; of this rank
  std::uint64_t wrong = 0; // bytes, on all ranks
  std::string path;
};

// Starts of the call that were armed ahead, made by a kernel one after the other. Collective;
// throws std::runtime_error.
[[nodiscard]] ArmedTime time_armed(
    const DeviceCall& call, int starts, const OwnedStream& stream, MPI_Comm comm,
    std::uint64_t round);

} // namespace ferry::bench
