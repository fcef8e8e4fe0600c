// SPDX-License-Identifier: MIT
// A rank that waits inside of the MPI below, in MPI_Recv or anywhere else, must move on the
// collectives that it has started with Ferry, or legal programs deadlock. MPICH on UCX calls
// ucp_worker_progress in each of its waits, across a border of libraries; this library stands
// there.
#include "lib/interpose/progress.hpp"

#include "include/ferry/ferry.h"
#include "lib/base/below.hpp"
#include "lib/base/inside.hpp"
#include "lib/exec/active.hpp"
#include "lib/interpose/helper.hpp"
#include "lib/interpose/next.hpp"
#include "lib/interpose/token.hpp"

namespace ferry::interpose {
namespace {

constexpr unsigned kCallsPerLook = 8; // a wait below makes one call in some 50 ns

std::atomic<bool> seen{false};

// Threads of the MPI below make progress as well; they must stay out of communicators that are not
// locked.
thread_local bool calls_mpi = false;
thread_local unsigned calls = 0;

void serve() {
  if (!calls_mpi || core::inside.depth > 0 || ++calls % kCallsPerLook != 0) return;
  const core::Inside scope;
  // With many threads the MPI below holds a lock here; what needs MPI is left to the helper then.
  core::inside.mpi_closed = many_threads();
  core::serve_all();
  core::inside.mpi_closed = false;
}

} // namespace

void note_wait() {
  calls_mpi = true;
}

void note_start() {
  note_wait();
  if (many_threads()) wake_helper();
}

bool waits_below_serve() {
  return seen.load(std::memory_order_relaxed);
}

bool many_threads() {
  static const bool many = [] {
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE;
  }();
  return many;
}

} // namespace ferry::interpose

extern "C" FERRY_API unsigned ucp_worker_progress(void* worker);

namespace {

constinit std::atomic<decltype(&ucp_worker_progress)> next_progress{nullptr};

// Of the program's own requests, or of calls of ferry.h.
bool in_flight() {
  return ferry::interpose::token_counts.started.load(std::memory_order_relaxed) != 0 ||
         ferry::core::Active::any_busy();
}

[[gnu::noinline]] unsigned progress_and_serve(void* worker) {
  using namespace ferry::interpose;
  static const auto next = find_next<decltype(&ucp_worker_progress)>("ucp_worker_progress");
  next_progress.store(next, std::memory_order_relaxed);
  ferry::core::below_serves.store(true, std::memory_order_relaxed);
  const unsigned done = next(worker);
  if (!in_flight()) return done;
  seen.store(true, std::memory_order_relaxed);
  serve();
  return done;
}

} // namespace

unsigned ucp_worker_progress(void* worker) {
  const auto next = next_progress.load(std::memory_order_relaxed);
  if (next != nullptr && !in_flight()) [[likely]]
    return next(worker);
  return progress_and_serve(worker);
}
