/* SPDX-License-Identifier: MIT */
/* A small tool of the PMPI kind: counts three functions and says at the end what it saw. Preloaded
 * before Ferry it stands above, behind Ferry it stands below. */
#include <mpi.h>
#include <stdio.h>

static int alltoall = 0, exscan = 0, wait = 0;

int MPI_Alltoall(
    const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm) {
  ++alltoall;
  return PMPI_Alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

int MPI_Exscan(
    const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm) {
  ++exscan;
  return PMPI_Exscan(sendbuf, recvbuf, count, datatype, op, comm);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++wait;
  return PMPI_Wait(request, status);
}

int MPI_Finalize(void) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("tool: %d alltoall, %d exscan, %d wait\n", alltoall, exscan, wait);
  fflush(stdout);
  return PMPI_Finalize();
}
