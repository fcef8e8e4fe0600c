/* SPDX-License-Identifier: MIT */
/* Under ferry-run: blocking calls as the program makes them, and straight to the MPI below, in
 * turns in one job. Prints a line for each collective and size on rank 0: bytes, then median and
 * least us of both, the MPI below first. Arguments: SECONDS SIZE... */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRounds = 4096, kCalls = 16, kSides = 2 };

static int (*alltoall[kSides])(
    const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm) = {MPI_Alltoall};
static int (*allgather[kSides])(
    const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm) = {MPI_Allgather};
static int (*bcast[kSides])(void*, int, MPI_Datatype, int, MPI_Comm) = {MPI_Bcast};
static int (*allreduce[kSides])(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm) = {
    MPI_Allreduce};
static int (*barrier[kSides])(MPI_Comm) = {MPI_Barrier};

static char *out, *in;

static int call_alltoall(int side, int bytes) {
  return alltoall[side](out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}
static int call_allgather(int side, int bytes) {
  return allgather[side](out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}
static int call_bcast(int side, int bytes) {
  return bcast[side](out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static int call_allreduce(int side, int bytes) {
  return allreduce[side](out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static int call_barrier(int side, int bytes) {
  (void)bytes;
  return barrier[side](MPI_COMM_WORLD);
}

static const struct {
  const char* name;
  int (*run)(int side, int bytes);
} collectives[] = {
    {"alltoall", call_alltoall},
    {"allgather", call_allgather},
    {"bcast", call_bcast},
    {"allreduce", call_allreduce},
    {"barrier", call_barrier}};

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static void measure(int which, int bytes, double seconds, int rank) {
  static double times[kSides][kRounds];
  const double begin = MPI_Wtime();
  int rounds = 0, more = 1;
  while (more && rounds < kRounds) {
    for (int turn = 0; turn < kSides; ++turn) {
      const int side = (rounds + turn) % kSides;
      collectives[which].run(side, bytes);
      barrier[1](MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      for (int i = 0; i < kCalls; ++i) collectives[which].run(side, bytes);
      times[side][rounds] = (MPI_Wtime() - start) / kCalls * 1e6;
    }
    ++rounds;
    more = rounds < 5 || MPI_Wtime() - begin < seconds;
    bcast[1](&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  for (int side = 0; side < kSides; ++side) {
    qsort(times[side], (size_t)rounds, sizeof(double), compare);
  }
  if (rank != 0) return;
  printf(
      "%s %d %.3f %.3f %.3f %.3f\n", collectives[which].name, bytes, times[1][rounds / 2],
      times[0][rounds / 2], times[1][0], times[0][0]);
  fflush(stdout);
}

/* Of the MPI below, past the library that stands in front of it. */
static void* below(const char* name) {
  void* library = dlopen("libmpich.so.12", RTLD_NOW | RTLD_NOLOAD);
  void* found = library != NULL ? dlsym(library, name) : NULL;
  if (found == NULL) {
    fprintf(stderr, "there is no %s of MPICH in this process\n", name);
    exit(1);
  }
  return found;
}

int main(int argc, char** argv) {
  int rank = 0, size = 1, most = 8;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  *(void**)&alltoall[1] = below("PMPI_Alltoall");
  *(void**)&allgather[1] = below("PMPI_Allgather");
  *(void**)&bcast[1] = below("PMPI_Bcast");
  *(void**)&allreduce[1] = below("PMPI_Allreduce");
  *(void**)&barrier[1] = below("PMPI_Barrier");
  for (int i = 2; i < argc; ++i) most = atoi(argv[i]) > most ? atoi(argv[i]) : most;
  out = calloc((size_t)size, (size_t)most);
  in = calloc((size_t)size, (size_t)most);
  for (int which = 0; which < 4; ++which) {
    for (int i = 2; i < argc; ++i) measure(which, atoi(argv[i]), atof(argv[1]), rank);
  }
  measure(4, 0, atof(argv[1]), rank);
  MPI_Finalize();
  return 0;
}
