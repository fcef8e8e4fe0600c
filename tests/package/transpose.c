/* SPDX-License-Identifier: MIT */
/* Block i of rank r is 100 r + i; after the exchange block i of rank r is 100 i + r. */
#include <ferry/ferry.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, size, *send, *recv, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  ferry_alloc((MPI_Aint)(sizeof(int) * (size_t)size), &send);
  ferry_alloc((MPI_Aint)(sizeof(int) * (size_t)size), &recv);
  for (int i = 0; i < size; ++i) send[i] = 100 * rank + i;
  for (int i = 0; i < size; ++i) recv[i] = -1;
  ferry_alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < size; ++i) wrong += recv[i] != 100 * i + rank;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("C: %d ranks, %d wrong blocks\n", size, wrong);
  ferry_free(send);
  ferry_free(recv);
  MPI_Finalize();
  return wrong != 0;
}
