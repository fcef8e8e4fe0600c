// SPDX-License-Identifier: MIT
#pragma once

namespace ferry::interpose {

// An operation was started by this thread: from now on Ferry may move it on inside of waits of the
// MPI below.
void note_start();

// This thread goes into a collective of the MPI below, inside of which Ferry may move on as well.
void note_wait();

// Whether waits of the MPI below have been seen to move Ferry's operations on.
[[nodiscard]] bool waits_below_serve();

// MPI_THREAD_MULTIPLE, asked once.
[[nodiscard]] bool many_threads();

} // namespace ferry::interpose
