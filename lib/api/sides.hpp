// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include "lib/api/call.hpp"

namespace ferry::core {

// One side of a call from the arguments of MPI: regular, v, w, and the counts of reduce_scatter.
inline Side block(const void* buffer, MPI_Count count, MPI_Datatype type) {
  return {buffer, count, type, {}, {}, nullptr};
}
template <class Count, class Displ>
Side ragged(const void* buffer, const Count* counts, const Displ* displs, MPI_Datatype type) {
  return {buffer, 0, type, counts, displs, nullptr, true};
}
template <class Count, class Displ>
Side mixed(
    const void* buffer, const Count* counts, const Displ* displs, const MPI_Datatype* types) {
  return {buffer, 0, MPI_DATATYPE_NULL, counts, displs, types, true};
}
template <class Count>
Side counted(const void* buffer, const Count* counts, MPI_Datatype type) {
  return {buffer, 0, type, counts, {}, nullptr, true};
}

} // namespace ferry::core
