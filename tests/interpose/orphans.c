/* SPDX-License-Identifier: MIT */
/* The MPI below gives no request for a collective that Ferry has begun: the call is an error there,
 * peers get their data all the same, and what follows is right. Runs with no_grequest preloaded. */
#include "check.h"

int main(int argc, char** argv) {
  enum { kRounds = 30, kCount = 1500, kSmall = 4, kMost = 8 };
  begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  static int send[kRounds][kMost * kCount], recv[kRounds][kMost * kCount]; /* live until the end */
  const char* ranks = getenv("NO_GREQUEST");
  const int refused_here = ranks != NULL && strchr(ranks, '0' + rank) != NULL;
  for (int round = 0; round < kRounds; ++round) {
    const int count = round % 2 == 0 ? kSmall : kCount;
    for (int to = 0; to < size; ++to) {
      for (int i = 0; i < count; ++i)
        send[round][to * count + i] = value(round, rank, to, i % 1024);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Ialltoall(
        send[round], count, MPI_INT, recv[round], count, MPI_INT, MPI_COMM_WORLD, &request);
    if (refused_here && round % 3 == 1) {
      CHECK(code != MPI_SUCCESS);
      CHECK(request == MPI_REQUEST_NULL);
    } else {
      CHECK(code == MPI_SUCCESS);
      CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
    /* A later call of the communicator ends behind it. */
    int mine = rank + round, sum = 0;
    CHECK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(sum == size * round + size * (size - 1) / 2);
    for (int from = 0; from < size; ++from) {
      for (int i = 0; i < count; ++i) {
        CHECK(recv[round][from * count + i] == value(round, from, rank, i % 1024));
      }
    }
  }
  return end();
}
