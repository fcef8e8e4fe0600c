// SPDX-License-Identifier: MIT
#pragma once

#include "include/ferry/ferry.h"
#include "lib/schedule/collective.hpp"

namespace ferry::core {

// Checks the arguments of a call as far as one rank can, and makes its description; `ranks` is the
// size of its communicator. Throws Failure.
[[nodiscard]] CollectiveDesc describe_call(const ferry_call& call, int ranks);

// The layout of `count` elements of a type. Throws Failure for types that are null, not committed,
// or have gaps.
[[nodiscard]] Layout layout_of(MPI_Comm comm, MPI_Count count, MPI_Datatype type, const char* what);

} // namespace ferry::core
