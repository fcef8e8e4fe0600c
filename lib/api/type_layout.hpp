// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include "lib/memory/layout.hpp"

namespace ferry::core {

// Where the data of `count` elements of an MPI datatype lies. The type map is made at the first
// call for a type and hangs on an attribute of it, so it goes with the type. Throws Failure for a
// negative count, no type or one that is not committed; `what` names the argument in its text.
[[nodiscard]] Layout type_layout(
    MPI_Comm comm, MPI_Count count, MPI_Datatype type, const char* what);

} // namespace ferry::core
