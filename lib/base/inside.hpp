// SPDX-License-Identifier: MIT
#pragma once

namespace ferry::core {

// Whether this thread is inside of Ferry. The preload library asks: calls of MPI that Ferry makes
// itself go straight to the MPI below, and Ferry is not entered a second time from there.
struct InsideState {
  int depth = 0;
  bool mpi_closed = false; // inside of a call of the MPI below, which must not be entered again
};

// One place for each library that Ferry is linked into; a plain word of the thread, since it is
// touched by every call.
inline __attribute__((tls_model("initial-exec"))) thread_local InsideState inside;

// Ferry runs on this thread from here to the end of the scope.
class Inside {
 public:
  Inside() { ++inside.depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { --inside.depth; }
};

// The user's code runs on this thread from here to the end of the scope: error handlers.
class Outside {
 public:
  Outside() : kept_(inside) { inside = {}; }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;
  ~Outside() { inside = kept_; }

 private:
  InsideState kept_;
};

} // namespace ferry::core
