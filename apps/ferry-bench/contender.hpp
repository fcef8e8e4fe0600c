// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>

#include <mpi.h>

#include "apps/ferry-bench/buffers.hpp"
#include "apps/ferry-bench/options.hpp"

namespace ferry::bench {

// One implementation of the collective on the buffers as they were sized when it was made.
struct Contender {
  // Runs the collective once, in the form that was asked for. Collective; throws Error.
  std::function<void()> call;
  // "<path>: <why>" of this rank. Collective: it may run the collective once.
  std::function<std::string()> explain;
};

[[nodiscard]] Contender make_ferry(const Options& options, Buffers& buffers, MPI_Comm comm);

// The same by the MPI below.
[[nodiscard]] Contender make_peer(const Options& options, Buffers& buffers, MPI_Comm comm);

// No collective: the bare copies of the same bytes, the limit for both.
[[nodiscard]] Contender make_limit(Buffers& buffers);

// The call that both make.
[[nodiscard]] ferry_call describe(const Options& options, Buffers& buffers, MPI_Comm comm);

} // namespace ferry::bench
