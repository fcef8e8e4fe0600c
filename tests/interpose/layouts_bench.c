/* SPDX-License-Identifier: MIT */
/* An MPI_Alltoall of strided data against one of as many contiguous bytes, both sides of the same
 * type. Kinds take turns; every figure is the median of many rounds, with the ratio to contiguous:
 * of calls back to back with the same data, which need not move from cache to cache then, and of
 * calls whose data was written right before, as programs do. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRounds = 31, kSmallest = 256, kLargest = 4 << 20, kWidest = 8, kKinds = 6 };

static const struct {
  const char* name;
  int piece, stride; /* bytes */
} kinds[kKinds] = {
    {"contiguous", 64, 64},      {"64 bytes of 128", 64, 128}, {"double, stride 2", 8, 16},
    {"double, stride 3", 8, 24}, {"3 floats of 4", 12, 16},    {"double, stride 8", 8, 64},
};

static int rank, size;

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

/* One block: an element of it is all of the block's bytes. */
static MPI_Datatype type_of(int kind, int bytes) {
  MPI_Datatype piece, type;
  MPI_Type_contiguous(kinds[kind].piece, MPI_BYTE, &piece);
  MPI_Type_create_hvector(bytes / kinds[kind].piece, 1, kinds[kind].stride, piece, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&piece);
  return type;
}

static double exchange(const char* send, char* recv, MPI_Datatype type, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) MPI_Alltoall(send, 1, type, recv, 1, type, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) / calls * 1e6;
}

/* All that a call sends is written before it, and its time is that of the call alone. */
static double exchange_fresh(char* send, size_t room, char* recv, MPI_Datatype type, int calls) {
  double spent = 0;
  for (int i = 0; i < calls; ++i) {
    memset(send, i, room);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_Alltoall(send, 1, type, recv, 1, type, MPI_COMM_WORLD);
    spent += MPI_Wtime() - start;
  }
  return spent / calls * 1e6;
}

static double median(double* times) {
  qsort(times, kRounds, sizeof(double), compare);
  return times[kRounds / 2];
}

static void measure(int bytes, char* send, char* recv) {
  const int calls = bytes < (64 << 10) ? 100 : bytes < (1 << 20) ? 10 : 2;
  double spent[kKinds][kRounds];
  double fresh[kKinds][kRounds];
  MPI_Datatype types[kKinds];
  for (int kind = 0; kind < kKinds; ++kind) types[kind] = type_of(kind, bytes);
  for (int round = 0; round < kRounds; ++round) {
    for (int kind = 0; kind < kKinds; ++kind) {
      const size_t span = (size_t)(bytes / kinds[kind].piece) * (size_t)kinds[kind].stride;
      spent[kind][round] = exchange(send, recv, types[kind], calls);
      fresh[kind][round] = exchange_fresh(send, span * (size_t)size, recv, types[kind], calls);
    }
  }
  const double plain = median(spent[0]);
  const double plain_fresh = median(fresh[0]);
  for (int kind = 0; kind < kKinds; ++kind) {
    MPI_Type_free(&types[kind]);
    const double again = median(spent[kind]);
    const double first = median(fresh[kind]);
    if (rank == 0) {
      printf(
          "%8d  %-18s %10.2f %6.2f %10.2f %6.2f\n", bytes, kinds[kind].name, again, again / plain,
          first, first / plain_fresh);
    }
  }
  fflush(stdout);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const size_t room = (size_t)kLargest * kWidest * (size_t)size;
  char* send = malloc(room);
  char* recv = malloc(room);
  if (send == NULL || recv == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  memset(send, 1, room);
  memset(recv, 2, room);
  if (rank == 0) printf("   bytes  layout                     us  ratio   fresh us  ratio\n");
  for (int bytes = kSmallest; bytes <= kLargest; bytes *= 4) measure(bytes, send, recv);
  free(send);
  free(recv);
  return MPI_Finalize();
}
