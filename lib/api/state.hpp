// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>
#include <memory>

#include "lib/exec/communicator.hpp"

namespace ferry::core {

// The state of a communicator, made at its first call: it hangs on an attribute, is not copied by
// MPI_Comm_dup, and goes with MPI_Comm_free. ranks_of() has checked the communicator.
[[nodiscard]] std::shared_ptr<Communicator>& state_of(MPI_Comm comm);
// Ranks of a communicator; does not make a state. Throws Failure for what is no
// intra-communicator.
[[nodiscard]] int ranks_of(MPI_Comm comm);
// The state if there is one, else null.
[[nodiscard]] std::shared_ptr<Communicator> find_state(MPI_Comm comm);
// Throws Failure unless MPI runs.
void require_mpi();

} // namespace ferry::core
