/* SPDX-License-Identifier: MIT */
/* Four calls that MPICH 4.0.2 gets wrong, right. Without Ferry this program fails. An argument
 * names one of them. */
#include "check.h"

enum { kMost = 8 };

/* From the second start on the data of the first (case 41). */
static void allgather_init(void) {
  int mine = 0, all[kMost];
  MPI_Request request;
  MPI_Allgather_init(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int iteration = 0; iteration < 1000; ++iteration) {
    mine = value(iteration, rank, 0, 0);
    memset(all, -1, sizeof all);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int from = 0; from < size; ++from) CHECK(all[from] == value(iteration, from, 0, 0));
  }
  MPI_Request_free(&request);
}

/* The root's own data is read when the request is made (case 42). */
static void gather_init(void) {
  for (int root = 0; root < size; ++root) {
    int mine = -5, all[kMost];
    MPI_Request request;
    MPI_Gather_init(
        &mine, 1, MPI_INT, all, 1, MPI_INT, root, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int iteration = 0; iteration < 4; ++iteration) {
      mine = value(iteration, rank, root, 0);
      memset(all, -1, sizeof all);
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      for (int from = 0; from < size && rank == root; ++from) {
        CHECK(all[from] == value(iteration, from, root, 0));
      }
    }
    MPI_Request_free(&request);
  }
}

/* Own data is left in some blocks (case 1). */
static void ialltoallw_in_place(void) {
  int counts[kMost], displs[kMost], buffer[kMost * 2 * kMost];
  MPI_Datatype types[kMost];
  MPI_Request request;
  for (int persistent = 0; persistent < 2; ++persistent) {
    int offset = 0;
    for (int peer = 0; peer < size; ++peer) {
      const int count = rank + peer + 1; /* the same for both of a pair */
      MPI_Type_contiguous(count, MPI_INT, &types[peer]);
      MPI_Type_commit(&types[peer]);
      counts[peer] = 1;
      displs[peer] = offset * (int)sizeof(int);
      for (int i = 0; i < count; ++i) buffer[offset + i] = value(persistent, rank, peer, i);
      offset += count;
    }
    if (persistent) {
      MPI_Alltoallw_init(
          MPI_IN_PLACE, NULL, NULL, NULL, buffer, counts, displs, types, MPI_COMM_WORLD,
          MPI_INFO_NULL, &request);
      MPI_Start(&request);
    } else {
      MPI_Ialltoallw(
          MPI_IN_PLACE, NULL, NULL, NULL, buffer, counts, displs, types, MPI_COMM_WORLD, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (persistent) MPI_Request_free(&request);
    for (int peer = 0; peer < size; ++peer) {
      const int* block = buffer + displs[peer] / (int)sizeof(int);
      for (int i = 0; i < rank + peer + 1; ++i) CHECK(block[i] == value(persistent, peer, rank, i));
      MPI_Type_free(&types[peer]);
    }
  }
}

/* Nothing is sent, and the pointers are equal: no error (case 16). */
static void alltoallw_of_nothing(void) {
  int counts[kMost] = {0}, displs[kMost] = {0}, buffer[4] = {1, 2, 3, 4};
  MPI_Datatype types[kMost];
  for (int peer = 0; peer < kMost; ++peer) types[peer] = MPI_INT;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int code =
      MPI_Alltoallw(buffer, counts, displs, types, buffer, counts, displs, types, MPI_COMM_WORLD);
  CHECK(code == MPI_SUCCESS);
  CHECK(
      MPI_Alltoallv(
          buffer, counts, displs, MPI_INT, buffer, counts, displs, MPI_INT, MPI_COMM_WORLD) ==
      MPI_SUCCESS);
  CHECK(
      MPI_Alltoallw(NULL, counts, displs, types, NULL, counts, displs, types, MPI_COMM_WORLD) ==
      MPI_SUCCESS);
  for (int i = 0; i < 4; ++i) CHECK(buffer[i] == i + 1);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } parts[] = {
      {"allgather_init", allgather_init},
      {"gather_init", gather_init},
      {"ialltoallw_in_place", ialltoallw_in_place},
      {"alltoallw_of_nothing", alltoallw_of_nothing},
  };
  begin(&argc, &argv);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    if (argc < 2 || strcmp(argv[1], parts[i].name) == 0) parts[i].run();
  }
  return end();
}
