// SPDX-License-Identifier: MIT
// The _c forms: collectives with large counts.
#include "lib/interpose/entries.hpp"

#define FERRY_COUNT MPI_Count
#define FERRY_DISPL MPI_Aint
#define FERRY_COLLECTIVE(Name, name, operation, parameters, arguments, description)           \
  FERRY_FORMS(                                                                                \
      MPI_##Name##_c, MPI_I##name##_c, MPI_##Name##_init_c, operation, parameters, arguments, \
      description)

#include "lib/api/collectives.def"
