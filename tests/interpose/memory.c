/* SPDX-License-Identifier: MIT */
/* MPI_Alloc_mem and MPI_Free_mem of all sizes, with collectives in that memory. */
#include "check.h"

static void sizes(void) {
  static const MPI_Aint bytes[] = {0, 1, 64, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1};
  enum { kSizes = sizeof bytes / sizeof *bytes };
  for (int round = 0; round < 3; ++round) {
    char* blocks[kSizes];
    for (int i = 0; i < kSizes; ++i) {
      CHECK(MPI_Alloc_mem(bytes[i], MPI_INFO_NULL, &blocks[i]) == MPI_SUCCESS);
      if (bytes[i] > 0) memset(blocks[i], i + 1, (size_t)bytes[i]);
    }
    for (int i = 0; i < kSizes; ++i) {
      if (bytes[i] > 0) CHECK(blocks[i][0] == i + 1 && blocks[i][bytes[i] - 1] == i + 1);
    }
    for (int i = kSizes - 1; i >= 0; --i) CHECK(MPI_Free_mem(blocks[i]) == MPI_SUCCESS);
  }
}

static void errors(void) {
  void* block = NULL;
  int class = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Alloc_mem(-1, MPI_INFO_NULL, &block), &class);
  CHECK(class == MPI_ERR_ARG);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  CHECK(MPI_Alloc_mem(8192, info, &block) == MPI_SUCCESS);
  CHECK(MPI_Free_mem(block) == MPI_SUCCESS);
  MPI_Info_free(&info);
}

static void exchange(int count) {
  int *out, *in;
  MPI_Alloc_mem((MPI_Aint)sizeof(int) * count * size, MPI_INFO_NULL, &out);
  MPI_Alloc_mem((MPI_Aint)sizeof(int) * count * size, MPI_INFO_NULL, &in);
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (int to = 0; to < size; ++to) {
      for (int i = 0; i < count; ++i) out[to * count + i] = value(iteration, rank, to, i % 1024);
    }
    memset(in, -1, sizeof(int) * (size_t)(count * size));
    MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; ++from) {
      for (int i = 0; i < count; ++i) {
        CHECK(in[from * count + i] == value(iteration, from, rank, i % 1024));
      }
    }
  }
  MPI_Free_mem(out);
  MPI_Free_mem(in);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  sizes();
  errors();
  exchange(1);
  exchange(50000);
  MPI_Win window; /* its memory is not Ferry's business */
  int* base = NULL;
  MPI_Win_allocate(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  MPI_Win_fence(0, window);
  MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 3, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  CHECK(base[3] == (rank + size - 1) % size);
  MPI_Win_free(&window);
  return end();
}
