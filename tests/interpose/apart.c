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

/* Calls that MPICH 4.0.2 gets wrong by itself: long blocks with gaps on one rank alone, and a
 * reduce in place at a root that is not 0. */
static void as_without_faults(MPI_Comm comm) {
  enum { kLong = 5000 };
  static int wide[kMost * 2 * kLong], whole[kMost * kLong];
  const int apart = rank == size - 1; /* who has gaps */
  MPI_Datatype every_other, stretched;
  MPI_Type_vector(kLong, 1, 2, MPI_INT, &every_other);
  MPI_Type_create_resized(every_other, 0, 2 * kLong * sizeof(int), &stretched);
  MPI_Type_commit(&stretched);
  STEP();
  for (int to = 0; to < size; ++to) {
    for (int i = 0; i < kLong; ++i) whole[to * kLong + i] = value(1, rank, to, i % 1024);
  }
  memset(wide, -1, sizeof wide);
  if (apart) {
    MPI_Alltoall(whole, kLong, MPI_INT, wide, 1, stretched, comm);
  } else {
    MPI_Alltoall(whole, kLong, MPI_INT, wide, kLong, MPI_INT, comm);
  }
  for (int from = 0; from < size; ++from) {
    for (int i = 0; i < kLong; ++i) {
      const int at = from * kLong + i;
      CHECK(wide[apart ? 2 * at : at] == value(1, from, rank, i % 1024));
    }
  }
  for (int root = 0; root < size; ++root) {
    int sum = rank;
    STEP();
    MPI_Reduce(
        rank == root ? MPI_IN_PLACE : &sum, rank == root ? &sum : NULL, 1, MPI_INT, MPI_SUM, root,
        comm);
    CHECK(rank != root || sum == size * (size - 1) / 2);
    if (apart) memset(wide, 0, sizeof wide);
    for (int i = 0; rank == root && i < kLong; ++i) wide[apart ? 2 * i : i] = value(2, root, 0, 1);
    if (apart) {
      MPI_Bcast(wide, 1, stretched, root, comm);
    } else {
      MPI_Bcast(wide, kLong, MPI_INT, root, comm);
    }
    for (int i = 0; i < kLong; ++i) CHECK(wide[apart ? 2 * i : i] == value(2, root, 0, 1));
  }
  MPI_Type_free(&every_other);
  MPI_Type_free(&stretched);
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
  as_without_faults(MPI_COMM_WORLD);
  started_beside(MPI_COMM_WORLD, 0);
  started_beside(MPI_COMM_WORLD, size - 1);
  return end();
}
