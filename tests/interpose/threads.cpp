// SPDX-License-Identifier: MIT
// Several threads, each with a communicator of its own, in all forms at once (case 66).
#include <mpi.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

std::atomic<int> failures{0};
int rank = 0;
int size = 1;

int value(int thread, int iteration, int from) {
  return (thread * 1000 + iteration) * 64 + from;
}

void check(const std::vector<int>& in, int thread, int iteration) {
  for (int from = 0; from < size; ++from) {
    if (in[static_cast<std::size_t>(from)] != value(thread, iteration, from)) ++failures;
  }
}

void work(int thread, MPI_Comm comm) {
  constexpr int kIterations = 200;
  int mine = 0;
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<int> in(ranks), more(ranks);
  MPI_Request persistent = MPI_REQUEST_NULL;
  MPI_Allgather_init(&mine, 1, MPI_INT, in.data(), 1, MPI_INT, comm, MPI_INFO_NULL, &persistent);
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    mine = value(thread, iteration, rank);
    MPI_Request requests[2] = {persistent, MPI_REQUEST_NULL};
    MPI_Start(&requests[0]);
    MPI_Iallgather(&mine, 1, MPI_INT, more.data(), 1, MPI_INT, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(in, thread, iteration);
    check(more, thread, iteration);
    MPI_Allgather(&mine, 1, MPI_INT, in.data(), 1, MPI_INT, comm);
    check(in, thread, iteration);
  }
  MPI_Request_free(&persistent);
}

} // namespace

int main(int argc, char** argv) {
  constexpr int kThreads = 3;
  int level = MPI_THREAD_SINGLE;
  alarm(80);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<MPI_Comm> comms(kThreads);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back(work, i, comms[static_cast<std::size_t>(i)]);
  }
  for (std::thread& thread : threads) thread.join();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Finalize();
  if (failures > 0) std::fprintf(stderr, "rank %d: %d faults\n", rank, failures.load());
  return failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
