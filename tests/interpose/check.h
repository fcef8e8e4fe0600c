/* SPDX-License-Identifier: MIT */
/* What the programs of this folder share. They know nothing of Ferry: they are programs of MPI as
 * users have them, and each rank's exit status says whether it saw a fault. */
#pragma once

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures = 0;
static volatile int step = 0;
static int rank = 0;
static int size = 1;

#define CHECK(condition)                                                             \
  do {                                                                               \
    step = __LINE__;                                                                 \
    if (!(condition) && ++failures < 20) {                                           \
      fprintf(stderr, "rank %d, %s:%d: %s\n", rank, __FILE__, __LINE__, #condition); \
    }                                                                                \
  } while (0)

/* Where this rank is, for the time limit. */
#define STEP() (step = __LINE__)

static void on_time_limit(int signal_number) {
  char text[96];
  const int length =
      snprintf(text, sizeof text, "rank %d: time limit behind line %d\n", rank, step);
  (void)signal_number;
  if (write(STDERR_FILENO, text, (size_t)length) < 0) _exit(125);
  _exit(124);
}

static inline void limit_time(unsigned seconds) {
  signal(SIGALRM, on_time_limit);
  alarm(seconds);
}

static inline void begin(int* argc, char*** argv) {
  limit_time(60);
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static inline int end(void) {
  MPI_Finalize();
  if (failures != 0) fprintf(stderr, "rank %d: %d faults\n", rank, failures);
  return failures != 0;
}

/* The value of one element: of which iteration, from whom, to whom, at which place. */
static inline int value(int iteration, int from, int to, int index) {
  return ((iteration * 64 + from) * 64 + to) * 1024 + index;
}
