/* SPDX-License-Identifier: MIT */
/* Ranks that share no memory: blocking calls after the first go to the MPI below, between calls of
 * Ferry and beside what is under way. An argument "threads" asks for MPI_THREAD_MULTIPLE. */
#include "check.h"

enum { kMost = 64, kCount = 700 };
static int out[kMost * kCount], in[kMost * kCount];

static void fill(int iteration, int count) {
  for (int to = 0; to < size; ++to) {
    for (int i = 0; i < count; ++i) out[to * count + i] = value(iteration, rank, to, i);
  }
  memset(in, -1, sizeof in);
}

static void check(int iteration, int count) {
  for (int from = 0; from < size; ++from) {
    for (int i = 0; i < count; ++i) CHECK(in[from * count + i] == value(iteration, from, rank, i));
  }
}

/* Every form in turn, the blocking ones often: which call goes where must be alike on all ranks. */
static void forms_in_turn(MPI_Comm comm) {
  int counts[kMost], displs[kMost], sum = 0;
  MPI_Request lasting;
  for (int i = 0; i < size; ++i) {
    counts[i] = 3;
    displs[i] = 3 * i;
  }
  for (int iteration = 0; iteration < 60; ++iteration) {
    const int count = iteration % 7 == 0 ? kCount : 3;
    MPI_Request request;
    STEP();
    fill(iteration, count);
    switch (iteration % 6) {
      case 0:
      case 3:
        MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, comm);
        break;
      case 1:
        MPI_Ialltoall(out, count, MPI_INT, in, count, MPI_INT, comm, &request);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == size * (size - 1) / 2);
        break;
      case 2:
        MPI_Alltoall_init(out, count, MPI_INT, in, count, MPI_INT, comm, MPI_INFO_NULL, &lasting);
        MPI_Start(&lasting);
        MPI_Barrier(comm);
        MPI_Wait(&lasting, MPI_STATUS_IGNORE);
        MPI_Request_free(&lasting);
        break;
      case 4:
        fill(iteration, 3);
        MPI_Alltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, comm);
        check(iteration, 3);
        continue;
      default:
        memcpy(in, out, sizeof in);
        MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, in, count, MPI_INT, comm);
        break;
    }
    check(iteration, count);
  }
}

/* What rank 0 has started on a new communicator is set up while it waits in a call of the MPI below
 * for the others, who finish the first before they come. */
static void started_beside(MPI_Comm comm, int late) {
  for (int iteration = 0; iteration < 8; ++iteration) {
    MPI_Comm fresh;
    MPI_Request request;
    int sum = 0;
    MPI_Comm_dup(comm, &fresh);
    fill(iteration, 2);
    if (rank == late) usleep(3000);
    MPI_Ialltoall(out, 2, MPI_INT, in, 2, MPI_INT, fresh, &request);
    if (rank != 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == size * (size - 1) / 2);
    check(iteration, 2);
    MPI_Comm_free(&fresh);
  }
}

int main(int argc, char** argv) {
  const int threads = argc > 1 && strcmp(argv[1], "threads") == 0;
  int level = MPI_THREAD_SINGLE;
  limit_time(60);
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  forms_in_turn(MPI_COMM_WORLD);
  started_beside(MPI_COMM_WORLD, 0);
  started_beside(MPI_COMM_WORLD, size - 1);
  return end();
}
