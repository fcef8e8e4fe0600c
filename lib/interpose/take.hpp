// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include "lib/api/call.hpp"

namespace ferry::interpose {

using core::Call;
using core::Form;
using core::Operation;
using core::Side;

// One side of a call from the arguments of MPI: regular, v, w, and the counts of reduce_scatter.
inline Side block(const void* buffer, MPI_Count count, MPI_Datatype type) {
  return {buffer, count, type, {}, {}, nullptr};
}
template <class Count, class Displ>
Side ragged(const void* buffer, const Count* counts, const Displ* displs, MPI_Datatype type) {
  return {buffer, 0, type, counts, displs, nullptr};
}
template <class Count, class Displ>
Side mixed(
    const void* buffer, const Count* counts, const Displ* displs, const MPI_Datatype* types) {
  return {buffer, 0, MPI_DATATYPE_NULL, counts, displs, types};
}
template <class Count>
Side counted(const void* buffer, const Count* counts, MPI_Datatype type) {
  return {buffer, 0, type, counts, {}, nullptr};
}

// What became of a call: Ferry ran it, and the user gets `code`; or it goes to the next in line.
struct Verdict {
  bool taken = false;
  int code = MPI_SUCCESS;
};

// Runs, starts or initialises the call if Ferry carries it, which all ranks decide alike. A taken
// non-blocking or persistent call sets *request to a request of the MPI below.
[[nodiscard]] Verdict take(const Call& call, MPI_Request* request);

} // namespace ferry::interpose
