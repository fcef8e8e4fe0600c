/* SPDX-License-Identifier: MIT */
/* An allgather under way while this rank computes; ferry_test moves it on. */
#include <ferry/ferry.h>
#include <stdio.h>
#include <stdlib.h>

enum { kCount = 5000 }; /* ints that each rank gives */

static double compute_a_little(double sum) {
  for (int i = 1; i < 1000; ++i) sum += 1.0 / i;
  return sum;
}

int main(int argc, char** argv) {
  int rank, size, wrong = 0, done = 0;
  double sum = 0;
  char why[256];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int* mine = malloc(kCount * sizeof *mine);
  int* all = malloc((size_t)size * kCount * sizeof *all);
  if (mine == NULL || all == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < kCount; ++i) mine[i] = 100000 * rank + i;

  ferry_request request = FERRY_REQUEST_NULL;
  ferry_iallgather(mine, kCount, MPI_INT, all, kCount, MPI_INT, MPI_COMM_WORLD, &request);
  for (int part = 0; part < 1000 && !done; ++part) {
    sum = compute_a_little(sum);
    ferry_test(&request, &done);
  }
  ferry_wait(&request); /* returns at once when the test has said done */

  for (int i = 0; i < size * kCount; ++i) wrong += all[i] != 100000 * (i / kCount) + i % kCount;
  ferry_comm_explain(MPI_COMM_WORLD, why, sizeof why);
  if (rank == 0) printf("%d wrong, sum %g; %s\n", wrong, sum, why);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  free(mine);
  free(all);
  MPI_Finalize();
  return wrong != 0;
}
