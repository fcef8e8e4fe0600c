// SPDX-License-Identifier: MIT
// The collectives with counts of type int.
#include "lib/interpose/entries.hpp"

#define FERRY_COUNT int
#define FERRY_DISPL int
#define FERRY_COLLECTIVE(Name, name, operation, parameters, arguments, description) \
  FERRY_FORMS(                                                                      \
      MPI_##Name, MPI_I##name, MPI_##Name##_init, operation, parameters, arguments, description)

// Has no counts, so it has no _c form either.
FERRY_COLLECTIVE(
    Barrier, barrier, barrier, (MPI_Comm comm), (comm), (0, Side{}, Side{}, MPI_OP_NULL))
#include "lib/api/collectives.def"
