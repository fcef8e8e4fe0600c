// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include "include/ferry/ferry.h"
#include "lib/schedule/collective.hpp"

namespace ferry::core {

// Counts or displacements of a v or w form as the caller has them: int, MPI_Aint or MPI_Count.
class Numbers {
 public:
  Numbers() = default;
  Numbers(const int* values) : narrow_(values) {}
  Numbers(const MPI_Count* values) : wide_(values) {} // MPI_Aint is the same type with MPICH
  [[nodiscard]] bool given() const { return narrow_ != nullptr || wide_ != nullptr; }
  [[nodiscard]] MPI_Count operator[](int i) const {
    return narrow_ != nullptr ? narrow_[i] : wide_[i];
  }

 private:
  const int* narrow_ = nullptr;
  const MPI_Count* wide_ = nullptr;
};

// One side of a call. Regular forms have count and type; v forms counts, displs (in extents of
// type) and type; w forms counts, displs (in bytes) and types.
struct Side {
  const void* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  Numbers counts;
  Numbers displs;
  const MPI_Datatype* types = nullptr;
  bool arrays = false; // a v or w form: they must be there where this side matters
};

// Any collective in any form: what the entry points of ferry.h and of the preload library fill in.
// Broadcast: recv alone. Gather: recv matters at the root. Scatter: send matters at the root.
// Reductions: one count, of recv (reduce_scatter: recv.counts, one a rank), and one type,
// recv.type; send.buffer may be MPI_IN_PLACE. Barrier: none.
struct Call {
  const char* function = ""; // for error texts
  Operation operation = Operation::alltoall;
  Form form = Form::blocking;
  MPI_Comm comm = MPI_COMM_NULL;
  int root = 0;
  Side send;
  Side recv;
  MPI_Op reduction = MPI_OP_NULL;
  bool quiet = false; // FERRY_NO_ERROR_HANDLER
};

[[nodiscard]] inline bool reduces(Operation operation) {
  return operation == Operation::reduce_scatter || operation == Operation::allreduce ||
         operation == Operation::reduce;
}

// Run, start or initialise by form; *request is set but for Form::blocking. The error class, after
// it was reported.
int run_call(const Call& call, ferry_request* request);

// Who carries a call: Ferry, the MPI below as the program made it, or the MPI below with the data
// of this rank packed.
enum class Carrier { ferry, below, below_packed };

// Depends only on what is the same on all ranks: the communicator, the blocking calls that were
// made on it before, the operation, the reduction with its type. `why` is set when not. Throws
// Failure for a communicator that is none.
[[nodiscard]] Carrier carrier_of(const Call& call, const char** why);
// A regular call of which carrier_of() said below_packed.
[[nodiscard]] int run_packed(const Call& call);

} // namespace ferry::core
