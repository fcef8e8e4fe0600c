// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include "lib/memory/type_map.hpp"

namespace ferry::core {

// Part of MPI itself, and never freed.
[[nodiscard]] bool is_predefined(MPI_Datatype type);
// The data of one element of any type, in the order of its type map.
[[nodiscard]] Pieces flatten(MPI_Datatype type);

} // namespace ferry::core
