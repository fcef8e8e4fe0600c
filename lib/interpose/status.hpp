// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

namespace ferry::interpose {

// The empty status of MPI; the field MPI_ERROR is left as it is.
inline void set_empty(MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  status->count_lo = 0;
  status->count_hi_and_cancelled = 0;
}

} // namespace ferry::interpose
