// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/crew.hpp"

#include <sched.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace ferry::bench {
namespace {

void complete(MPI_Request request) {
  int done = 0;
  do {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) sched_yield();
  } while (done == 0);
}

} // namespace

Crew::Crew(MPI_Comm comm) {
  MPI_Comm_dup(comm, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
}

Crew::~Crew() {
  MPI_Comm_free(&comm_);
}

void Crew::barrier() const {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm_, &request);
  complete(request);
}

void Crew::maximum(std::span<double> values) const {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(
      MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX, comm_,
      &request);
  complete(request);
}

std::uint64_t Crew::sum(std::uint64_t value) const {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, comm_, &request);
  complete(request);
  return value;
}

void end_job(MPI_Comm comm, int status) {
  constexpr auto kForwarding = std::chrono::milliseconds(200);
  std::fflush(stderr);
  std::this_thread::sleep_for(kForwarding);
  MPI_Abort(comm, status);
  std::_Exit(status);
}

} // namespace ferry::bench
