// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

namespace ferry::bench {

// Whether the command line asks for "--memory device".
[[nodiscard]] bool wants_device(int argc, const char* const* argv);

// ferry-bench on device memory: against NCCL in its three modes, or beside a matrix product. The
// exit status. Collective; never throws.
[[nodiscard]] int run_device(int argc, const char* const* argv, MPI_Comm comm);

} // namespace ferry::bench
