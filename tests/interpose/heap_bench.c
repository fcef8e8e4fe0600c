/* SPDX-License-Identifier: MIT */
/* What memory that other ranks map is worth, and what it costs: an MPI_Alltoall between private and
 * between shared buffers, and a block that is allocated, filled and freed. Run it with ferry-run
 * and FERRY_SHARE_HEAP=1. Kinds take turns; every figure is the median of many rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRounds = 31, kSmallest = 2 << 10, kLargest = 8 << 20, kShared = 64 << 10 };

/* Of the C library, whatever stands in front of malloc. */
extern void* __libc_malloc(size_t bytes);
extern void __libc_free(void* block);

static int rank, size;

static void* take(size_t bytes, int shared) {
  void* block = NULL;
  if (!shared) return __libc_malloc(bytes);
  if (bytes >= kShared) return malloc(bytes); /* what FERRY_SHARE_HEAP serves */
  MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &block);
  return block;
}

static void give(void* block, size_t bytes, int shared) {
  if (!shared) {
    __libc_free(block);
  } else if (bytes >= kShared) {
    free(block);
  } else {
    MPI_Free_mem(block);
  }
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values) {
  qsort(values, kRounds, sizeof *values, compare);
  return values[kRounds / 2];
}

static double exchange(const char* send, char* recv, int bytes, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) {
    MPI_Alltoall(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - start) / calls * 1e6;
}

static double allocate(size_t bytes, int shared) {
  enum { kBlocks = 10 };
  const double start = MPI_Wtime();
  for (int i = 0; i < kBlocks; ++i) {
    char* block = take(bytes, shared);
    for (size_t at = 0; at < bytes; at += 4096) ((volatile char*)block)[at] = 1;
    give(block, bytes, shared);
  }
  return (MPI_Wtime() - start) / kBlocks * 1e6;
}

static void measure(int bytes) {
  double spent[2][kRounds], cost[2][kRounds];
  const size_t all = (size_t)bytes * (size_t)size;
  const int calls = bytes < (64 << 10) ? 200 : bytes < (1 << 20) ? 40 : 5;
  char* send[2];
  char* recv[2];
  for (int shared = 0; shared < 2; ++shared) {
    send[shared] = take(all, shared);
    recv[shared] = take(all, shared);
    memset(send[shared], rank, all);
    memset(recv[shared], rank, all);
  }
  for (int round = 0; round < kRounds; ++round) {
    for (int shared = 0; shared < 2; ++shared) {
      spent[shared][round] = exchange(send[shared], recv[shared], bytes, calls);
      cost[shared][round] = allocate((size_t)bytes, shared);
    }
  }
  for (int shared = 0; shared < 2; ++shared) {
    give(send[shared], all, shared);
    give(recv[shared], all, shared);
  }
  const double private_us = median(spent[0]);
  const double shared_us = median(spent[1]);
  if (rank == 0) {
    printf(
        "%8d %12.2f %10.2f %7.2f %14.2f %10.2f\n", bytes, private_us, shared_us,
        private_us / shared_us, median(cost[0]), median(cost[1]));
    fflush(stdout);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) printf("   bytes  alltoall us     shared   ratio   allocation us     shared\n");
  for (int bytes = kSmallest; bytes <= kLargest; bytes *= 2) measure(bytes);
  return MPI_Finalize();
}
