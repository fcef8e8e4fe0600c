// SPDX-License-Identifier: MIT
#pragma once

namespace ferry::interpose {

// With MPI_THREAD_MULTIPLE a thread of Ferry's own serves started operations now and then, until
// MPI is finalised: a wait of the MPI below cannot call MPI for them. Made at the first call;
// asleep while nothing is started.
void wake_helper();

} // namespace ferry::interpose
