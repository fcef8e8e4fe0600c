// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>

namespace ferry::core {

// Waits inside of the MPI below move Ferry's operations on: the preload library sets it, once it
// stands in the way of such waits. One place for each library that Ferry is linked into.
inline std::atomic<bool> below_serves{false};

} // namespace ferry::core
