/* SPDX-License-Identifier: MIT */
/* Preloaded beside Ferry: the MPI below refuses a few generalised requests, the second one of each
 * three on the ranks that NO_GREQUEST names by their last digits ("1", "0123"). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int PMPIX_Grequest_start(
    MPI_Grequest_query_function* query, MPI_Grequest_free_function* release,
    MPI_Grequest_cancel_function* cancel, MPIX_Grequest_poll_function* poll,
    MPIX_Grequest_wait_function* wait, void* state, MPI_Request* request) {
  static int calls = 0;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* ranks = getenv("NO_GREQUEST");
  if (ranks != NULL && strchr(ranks, '0' + rank % 10) != NULL && ++calls % 3 == 2) {
    return MPI_ERR_NO_MEM;
  }
  __typeof__(&PMPIX_Grequest_start) below = NULL;
  void* symbol = dlsym(RTLD_NEXT, "PMPIX_Grequest_start");
  memcpy(&below, &symbol, sizeof below);
  return below(query, release, cancel, poll, wait, state, request);
}
