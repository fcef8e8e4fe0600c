// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "matrix/collective_grid.hpp"
#include "support/communicators.hpp"

using namespace ferry::test;

TEST_CASE("barrier: grid, blocking") {
  run_collective(Coll::barrier, Way::blocking);
}
TEST_CASE("barrier: grid, nonblocking") {
  run_collective(Coll::barrier, Way::nonblocking);
}
TEST_CASE("barrier: grid, persistent") {
  run_collective(Coll::barrier, Way::persistent);
}

namespace {

// One counter for each rank, which all see.
class Counters {
 public:
  explicit Counters(const Comm& comm) {
    const MPI_Aint bytes = comm.rank() == 0 ? 64 * comm.size() : 0;
    void* own = nullptr;
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, comm.get(), &own, &window_);
    MPI_Aint size = 0;
    int unit = 0;
    MPI_Win_shared_query(window_, 0, &size, &unit, &base_);
  }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;
  ~Counters() { MPI_Win_free(&window_); }
  std::atomic<int>& operator[](int rank) {
    return *reinterpret_cast<std::atomic<int>*>(base_ + 64 * rank);
  }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  unsigned char* base_ = nullptr;
};

} // namespace

TEST_CASE("barrier: nobody is through before the last one has entered, in every form") {
  if (environment("MPIR_CVAR_NUM_CLIQUES", "") != "") return; // no shared window there
  const Comm& comm = zoo()[0];
  Counters entered(comm);
  for (int rank = 0; comm.rank() == 0 && rank < comm.size(); ++rank) entered[rank] = 0;
  MPI_Barrier(comm.get());
  ferry_request persistent = FERRY_REQUEST_NULL;
  CHECK(ferry_barrier_init(comm.get(), MPI_INFO_NULL, &persistent) == MPI_SUCCESS);
  for (int round = 1; round <= 60; ++round) {
    if (round % comm.size() == comm.rank() && round % 5 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    entered[comm.rank()] = round;
    Call call;
    call.form = {Coll::barrier, static_cast<Way>(round % kWays)};
    call.comm = comm.get();
    ferry_request request = FERRY_REQUEST_NULL;
    if (call.form.way == Way::persistent) {
      CHECK(ferry_start(&persistent) == MPI_SUCCESS);
      CHECK(complete_call(call, &persistent, round % 2 == 0) == MPI_SUCCESS);
    } else {
      CHECK(make_ferry_call(call, &request) == MPI_SUCCESS);
      CHECK(complete_call(call, &request, round % 2 == 0) == MPI_SUCCESS);
    }
    for (int rank = 0; rank < comm.size(); ++rank) CHECK(entered[rank] >= round);
  }
  CHECK(ferry_request_free(&persistent) == MPI_SUCCESS);
  MPI_Barrier(comm.get());
}
