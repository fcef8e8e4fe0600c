// SPDX-License-Identifier: MIT
#pragma once

#include "lib/api/call.hpp"
#include "lib/schedule/collective.hpp"

namespace ferry::core {

// Checks the arguments of a call as far as one rank can, and fills in its description, which is
// new; `rank` and `ranks` are those of its communicator. Throws Failure.
void describe_call(const Call& call, int rank, int ranks, CollectiveDesc& desc);

// Calls in which blocks differ or not every pair of ranks exchanges one.
[[nodiscard]] bool is_irregular(const Call& call);
void describe_irregular(const Call& call, int rank, int ranks, CollectiveDesc& desc);

// The layout of a buffer or a block, with its checks.
[[nodiscard]] Layout side_layout(
    const Call& call, const Side& side, MPI_Count count, MPI_Datatype type, const char* what);

// Reductions: counts, type and operation. carrier_of() has looked at type and operation before.
void describe_reduction(const Call& call, int rank, int ranks, CollectiveDesc& desc);
// May this operation be applied to this type, and is that Ferry's to do? Else the reason.
[[nodiscard]] const char* why_not_reduced(MPI_Op op, MPI_Datatype type);

} // namespace ferry::core
