/* SPDX-License-Identifier: MIT */
/* What Ferry made of a call: one line why, then the steps of rank 0. */
#include <ferry/ferry.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  int rank, size, *send, *recv;
  char why[256], steps[8192];
  size_t needed = 0;
  ferry_request request = FERRY_REQUEST_NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const MPI_Aint bytes = (MPI_Aint)sizeof(int) * 10000 * size;
  ferry_alloc(bytes, &send);
  ferry_alloc(bytes, &recv);
  ferry_alltoall_init(
      send, 10000, MPI_INT, recv, 10000, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  ferry_explain(request, why, sizeof why);
  ferry_print(request, steps, sizeof steps, &needed);
  if (rank == 0) printf("%s\n%s", why, steps);
  const int wrong = strlen(steps) + 1 != needed || strstr(steps, "alltoall rank ") == NULL;
  ferry_request_free(&request);
  ferry_free(send);
  ferry_free(recv);
  MPI_Finalize();
  return wrong;
}
