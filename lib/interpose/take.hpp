// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include "lib/api/sides.hpp"

namespace ferry::interpose {

using core::block;
using core::Call;
using core::counted;
using core::Form;
using core::mixed;
using core::Operation;
using core::ragged;
using core::Side;

// What became of a call: Ferry ran it, and the user gets `code`; or it goes to the next in line.
struct Verdict {
  bool taken = false;
  int code = MPI_SUCCESS;
};

// Runs, starts or initialises the call if Ferry carries it, which all ranks decide alike. A taken
// non-blocking or persistent call sets *request to a request of the MPI below.
[[nodiscard]] Verdict take(const Call& call, MPI_Request* request);

} // namespace ferry::interpose
