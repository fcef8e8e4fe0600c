/* SPDX-License-Identifier: MIT */
/* Two ranks whose calls do not fit together: an error in the status of the collective, and the
 * message beside it arrives. */
#include "check.h"

static int handled = 0, handled_class = 0;

static void note(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  ++handled;
  MPI_Error_class(*code, &handled_class);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(note, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  int out[8] = {0}, in[64 * 8], message = -1, class = 0;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  /* Rank 0 has other counts than the rest. */
  const int count = rank == 0 ? 2 : 3;
  const int peer = rank ^ 1;
  MPI_Iallgather(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&message, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Send(&rank, 1, MPI_INT, peer, 1, MPI_COMM_WORLD);
  const int code = MPI_Waitall(2, requests, statuses);
  MPI_Error_class(code, &class);
  CHECK(class == MPI_ERR_IN_STATUS);
  CHECK(handled == 1 && handled_class == MPI_ERR_IN_STATUS);
  CHECK(statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE);
  CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS && message == peer);
  CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
  MPI_Errhandler_free(&handler);
  return end();
}
