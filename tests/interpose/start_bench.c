/* SPDX-License-Identifier: MIT */
/* Microseconds from before MPI_Init until after the first collective of the slowest rank, and of
 * the same call once more. With the argument "none" there is no collective, and the time runs until
 * after MPI_Finalize. scripts/bench-start compares them with and without Ferry. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double slowest(double mine) {
  double all = 0;
  PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

int main(int argc, char** argv) {
  enum { kMost = 256 };
  const double begin = now();
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1 && strcmp(argv[1], "none") == 0) {
    MPI_Finalize();
    if (rank == 0) printf("%.1f 0\n", now() - begin);
    return 0;
  }
  double send[kMost] = {0};
  double recv[kMost] = {0};
  MPI_Alltoall(send, 1, MPI_DOUBLE, recv, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  const double first = slowest(now() - begin);
  const double again = now();
  MPI_Alltoall(send, 1, MPI_DOUBLE, recv, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  const double second = slowest(now() - again);
  if (rank == 0) printf("%.1f %.1f\n", first, second);
  MPI_Finalize();
  return 0;
}
