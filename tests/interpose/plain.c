/* SPDX-License-Identifier: MIT */
/* A program with a known number of calls, for what is told about them: 5 exchanges on the world, 3
 * of 64 KiB a block, 4 starts of a persistent one, 2 gathers on an inter-communicator, 1 exscan. */
#include "check.h"

enum { kLarge = 16384 };
static int out[8 * kLarge], in[8 * kLarge];

static void exchange(int iteration, int count, MPI_Comm comm) {
  for (int to = 0; to < size; ++to) {
    for (int i = 0; i < count; ++i) out[to * count + i] = value(iteration, rank, to, i % 1024);
  }
  memset(in, -1, sizeof in);
  MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, comm);
  for (int from = 0; from < size; ++from) {
    for (int i = 0; i < count; ++i) {
      CHECK(in[from * count + i] == value(iteration, from, rank, i % 1024));
    }
  }
}

static void over_the_border(void) {
  MPI_Comm half, both;
  int all[8], others = 0;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_set_name(half, "half");
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 4, &both);
  MPI_Comm_set_name(both, "both");
  MPI_Comm_remote_size(both, &others);
  for (int iteration = 0; iteration < 2; ++iteration) {
    const int mine = value(iteration, rank, 0, 0);
    memset(all, -1, sizeof all);
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, both);
    for (int i = 0; i < others; ++i) {
      CHECK(all[i] == value(iteration, 2 * i + 1 - rank % 2, 0, 0));
    }
  }
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  for (int iteration = 0; iteration < 5; ++iteration) exchange(iteration, 4, MPI_COMM_WORLD);
  for (int iteration = 0; iteration < 3; ++iteration) exchange(iteration, kLarge, MPI_COMM_WORLD);
  MPI_Request request;
  MPI_Alltoall_init(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int iteration = 0; iteration < 4; ++iteration) {
    for (int to = 0; to < size; ++to) out[to] = value(iteration, rank, to, 0);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int from = 0; from < size; ++from) CHECK(in[from] == value(iteration, from, rank, 0));
  }
  MPI_Request_free(&request);
  if (size > 1) over_the_border();
  int sum = 0;
  MPI_Exscan(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(rank == 0 || sum == rank * (rank - 1) / 2);
  return end();
}
