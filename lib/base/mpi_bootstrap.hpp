// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>
#include <memory>

#include "lib/base/bootstrap.hpp"

namespace ferry::core {

// Exchanges over the user's communicator itself: no hidden communicator, no context id used up.
std::unique_ptr<Bootstrap> make_mpi_bootstrap(MPI_Comm comm);

} // namespace ferry::core
