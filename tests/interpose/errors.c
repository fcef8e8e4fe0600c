/* SPDX-License-Identifier: MIT */
/* Errors reach the handler of the communicator, once, with a class of MPI. */
#include "check.h"

static int handled = 0, handled_class = 0;

static void note(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  ++handled;
  MPI_Error_class(*code, &handled_class);
}

static int class_of(int code) {
  int class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  return class;
}

/* The call gave `code`: the handler saw its class, once. */
#define CHECK_ERROR(call, class)                            \
  do {                                                      \
    handled = 0;                                            \
    const int code = (call);                                \
    CHECK(class_of(code) == class);                         \
    CHECK(handled == 1 && handled_class == class_of(code)); \
  } while (0)

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(note, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  int mine = rank, all[64], flag = 0;
  MPI_Request request;

  /* What one rank can see alone; every rank makes the same faulty call. */
  CHECK_ERROR(MPI_Allgather(&mine, -1, MPI_INT, all, -1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_COUNT);
  CHECK_ERROR(MPI_Bcast(&mine, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT);
  CHECK_ERROR(
      MPI_Iallgather(&mine, -1, MPI_INT, all, -1, MPI_INT, MPI_COMM_WORLD, &request),
      MPI_ERR_COUNT);

  MPI_Allgather_init(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  CHECK_ERROR(MPI_Start(&request), MPI_ERR_REQUEST);
  CHECK_ERROR(MPI_Cancel(&request), MPI_ERR_REQUEST);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int from = 0; from < size; ++from) CHECK(all[from] == from);
  MPI_Request_free(&request);

  MPI_Iallgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &request);
  CHECK_ERROR(MPI_Cancel(&request), MPI_ERR_REQUEST);
  CHECK_ERROR(MPI_Request_free(&request), MPI_ERR_REQUEST);
  CHECK_ERROR(MPI_Start(&request), MPI_ERR_REQUEST);
  CHECK(request != MPI_REQUEST_NULL);
  while (flag == 0) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  CHECK(request == MPI_REQUEST_NULL);

  /* And the communicator works on. */
  handled = 0;
  MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
  for (int from = 0; from < size; ++from) CHECK(all[from] == from);
  CHECK(handled == 0);
  MPI_Errhandler_free(&handler);
  return end();
}
