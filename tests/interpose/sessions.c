/* SPDX-License-Identifier: MIT */
/* A program of sessions: no MPI_Init, no MPI_COMM_WORLD. */
#include "check.h"

int main(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int mine, all[64];
  limit_time(60);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "ferry", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int iteration = 0; iteration < 3; ++iteration) {
    MPI_Request requests[2];
    int second, more[64];
    mine = value(iteration, rank, 0, 0);
    second = value(iteration, rank, 1, 0);
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm);
    MPI_Iallgather(&second, 1, MPI_INT, more, 1, MPI_INT, comm, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    for (int from = 0; from < size; ++from) {
      CHECK(all[from] == value(iteration, from, 0, 0));
      CHECK(more[from] == value(iteration, from, 1, 0));
    }
  }
  int class = 0;
  MPI_Error_class(MPI_Bcast(&mine, 1, MPI_INT, size, comm), &class);
  CHECK(class == MPI_ERR_ROOT);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  if (failures != 0) fprintf(stderr, "rank %d: %d faults\n", rank, failures);
  return failures != 0;
}
