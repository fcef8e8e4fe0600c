// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>
#include <memory>

#include "lib/exec/communicator.hpp"

namespace ferry::core {

using StateHolder = std::shared_ptr<Communicator>;

// The state of a communicator if it has one, else null.
[[nodiscard]] StateHolder* find_state(MPI_Comm comm);
// Ranks of a communicator that has no state yet. Throws Failure for what is no intra-communicator.
[[nodiscard]] int check_communicator(MPI_Comm comm);
// Make the state at the first call, after the check: it hangs on an attribute, is not copied by
// MPI_Comm_dup, and goes with MPI_Comm_free.
[[nodiscard]] StateHolder* make_state(MPI_Comm comm);
// Does MPI run? A communicator that is none of the predefined ones exists only then, also when a
// session made it, of which MPI_Initialized does not know.
[[nodiscard]] bool mpi_runs(MPI_Comm comm);

} // namespace ferry::core
