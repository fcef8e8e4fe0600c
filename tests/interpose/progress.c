/* SPDX-License-Identifier: MIT */
/* A rank that waits in one place serves the others: legal programs that deadlock where it does not.
 * An argument "threads" asks for MPI_THREAD_MULTIPLE. */
#include "check.h"

enum { kBytes = 1 << 20 };
static char *out, *in;

static void fill(int iteration) {
  for (int to = 0; to < size; ++to) memset(out + to * kBytes, iteration + 7 * rank + to, kBytes);
  memset(in, 0, (size_t)size * kBytes);
}

static void check(int iteration) {
  for (int from = 0; from < size; ++from) {
    const char expected = (char)(iteration + 7 * from + rank);
    CHECK(in[from * kBytes] == expected && in[(from + 1) * kBytes - 1] == expected);
  }
}

/* Rank 0 starts the exchange and then sits in MPI_Recv; the message comes from who completed it. */
static void exchange_then_message(int persistent) {
  MPI_Request request;
  int message = 0;
  for (int iteration = 0; iteration < 6; ++iteration) {
    fill(iteration);
    if (!persistent) {
      MPI_Ialltoall(out, kBytes, MPI_CHAR, in, kBytes, MPI_CHAR, MPI_COMM_WORLD, &request);
    } else if (iteration == 0) {
      MPI_Alltoall_init(
          out, kBytes, MPI_CHAR, in, kBytes, MPI_CHAR, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    }
    if (persistent) MPI_Start(&request);
    if (rank == 0) {
      for (int from = 1; from < size; ++from) {
        MPI_Recv(&message, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(message == from);
      }
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      if (iteration % 2 == 1) usleep(2000);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Ssend(&rank, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
    check(iteration);
  }
  if (persistent) MPI_Request_free(&request);
}

/* The last rank's receive comes after its collective; the send towards it needs a rendezvous, and
 * all the others wait in the collective for the sender. */
static void rendezvous_behind_collective(void) {
  MPI_Request request;
  char* message = malloc(4 * kBytes);
  int mine = rank, all[64];
  if (size < 2) return;
  memset(message, rank == 0 ? 9 : 0, 4 * kBytes);
  if (rank == 0) MPI_Isend(message, 4 * kBytes, MPI_CHAR, 1, 3, MPI_COMM_WORLD, &request);
  if (rank == 1) MPI_Irecv(message, 4 * kBytes, MPI_CHAR, 0, 3, MPI_COMM_WORLD, &request);
  /* Rank 1 waits in the collective while rank 0 completes its send first. */
  if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(message[0] == 9 && message[4 * kBytes - 1] == 9);
  }
  for (int from = 0; from < size; ++from) CHECK(all[from] == from);
  free(message);
}

/* The same with a collective that is under way on a communicator which was freed. */
static void rendezvous_behind_freed_communicator(void) {
  MPI_Comm dup;
  MPI_Request request, gather;
  char* message = calloc(4, kBytes);
  int all[64];
  if (size >= 2) {
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, dup);
    memset(all, -1, sizeof all);
    if (rank == 0) {
      memset(message, 5, 4 * kBytes);
      MPI_Send(message, 4 * kBytes, MPI_CHAR, 1, 3, MPI_COMM_WORLD);
    }
    if (rank == 1) MPI_Irecv(message, 4 * kBytes, MPI_CHAR, 0, 3, MPI_COMM_WORLD, &request);
    MPI_Iallgather(&rank, 1, MPI_INT, all, 1, MPI_INT, dup, &gather);
    MPI_Comm_free(&dup);
    MPI_Wait(&gather, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(rank > 1 || message[4 * kBytes - 1] == 5);
    for (int from = 0; from < size; ++from) CHECK(all[from] == from);
  }
  free(message);
}

/* Three communicators, and each rank takes them in another order (case 63). */
static void other_order(void) {
  enum { kComms = 3 };
  static const int orders[6][kComms] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  MPI_Comm comms[kComms];
  MPI_Request requests[kComms];
  int mine[kComms], all[kComms][64];
  for (int i = 0; i < kComms; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int round = 0; round < 36; ++round) {
    const int* begin_in = orders[(round + rank) % 6];
    const int* end_in = orders[(round / 6 + 5 * rank) % 6];
    for (int i = 0; i < kComms; ++i) {
      const int comm = begin_in[i];
      mine[comm] = value(round, rank, comm, 1);
      MPI_Iallgather(&mine[comm], 1, MPI_INT, all[comm], 1, MPI_INT, comms[comm], &requests[comm]);
    }
    for (int i = 0; i < kComms; ++i) MPI_Wait(&requests[end_in[i]], MPI_STATUS_IGNORE);
    for (int comm = 0; comm < kComms; ++comm) {
      for (int from = 0; from < size; ++from) {
        CHECK(all[comm][from] == value(round, from, comm, 1));
      }
    }
  }
  for (int i = 0; i < kComms; ++i) MPI_Comm_free(&comms[i]);
}

int main(int argc, char** argv) {
  const int threads = argc > 1 && strcmp(argv[1], "threads") == 0;
  int level = MPI_THREAD_SINGLE;
  limit_time(60);
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(!threads || level == MPI_THREAD_MULTIPLE);
  out = malloc((size_t)size * kBytes);
  in = malloc((size_t)size * kBytes);
  exchange_then_message(0);
  exchange_then_message(1);
  rendezvous_behind_collective();
  rendezvous_behind_freed_communicator();
  other_order();
  free(out);
  free(in);
  return end();
}
