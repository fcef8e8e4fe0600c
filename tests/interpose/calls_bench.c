/* SPDX-License-Identifier: MIT */
/* What calls cost that are not Ferry's: alone, or beside a persistent collective (argument
 * "beside"). Prints ns a call, least of many rounds; under callgrind each kind is a function of its
 * own. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kCalls = 1000 };

static MPI_Request pending;
static double data[2];

#define KIND static void __attribute__((noinline))

KIND kind_comm_rank(void) {
  int rank = 0;
  for (int i = 0; i < kCalls; ++i) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

/* 8 bytes to the own rank. */
KIND kind_isend_recv_wait(void) {
  for (int i = 0; i < kCalls; ++i) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(&data[0], 1, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &request);
    MPI_Recv(&data[1], 1, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

KIND kind_isend_irecv_waitall(void) {
  for (int i = 0; i < kCalls; ++i) {
    MPI_Request requests[2];
    MPI_Irecv(&data[1], 1, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(&data[0], 1, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
}

/* Of a request that stays open: the MPI below makes progress in each. */
KIND kind_test(void) {
  int done = 0;
  for (int i = 0; i < kCalls; ++i) MPI_Test(&pending, &done, MPI_STATUS_IGNORE);
}

static const struct {
  const char* name;
  void (*run)(void);
} kinds[] = {
    {"comm_rank", kind_comm_rank},
    {"isend_recv_wait", kind_isend_recv_wait},
    {"isend_irecv_waitall", kind_isend_irecv_waitall},
    {"test", kind_test},
};

int main(int argc, char** argv) {
  MPI_Request beside = MPI_REQUEST_NULL;
  MPI_Init(&argc, &argv);
  const int rounds = argc > 1 && strcmp(argv[argc - 1], "once") == 0 ? 1 : 200;
  if (argc > 1 && strcmp(argv[1], "beside") == 0) {
    MPI_Barrier_init(MPI_COMM_SELF, MPI_INFO_NULL, &beside);
  }
  MPI_Irecv(&data[1], 1, MPI_DOUBLE, 0, 2, MPI_COMM_SELF, &pending);
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; ++k) {
    double least = 1e9;
    for (int round = 0; round < rounds; ++round) {
      const double start = MPI_Wtime();
      kinds[k].run();
      const double spent = MPI_Wtime() - start;
      if (spent < least) least = spent;
    }
    printf("%s %.1f\n", kinds[k].name, least / kCalls * 1e9);
  }
  MPI_Cancel(&pending);
  MPI_Wait(&pending, MPI_STATUS_IGNORE);
  if (beside != MPI_REQUEST_NULL) MPI_Request_free(&beside);
  return MPI_Finalize();
}
