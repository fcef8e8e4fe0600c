/* SPDX-License-Identifier: MIT */
/* A tool of the PMPI kind that stands above Ferry: how often a program calls collectives, and the
 * seconds that it spends in them. Rank 0 prints the largest sum of all ranks. */
#include <mpi.h>
#include <stdio.h>

enum { kAlltoall, kAllgather, kBcast, kReduce, kOther, kKinds };
static double seconds[kKinds];
static long calls[kKinds];

#define TIMED(kind, call)                  \
  do {                                     \
    const double start = PMPI_Wtime();     \
    const int code = (call);               \
    seconds[kind] += PMPI_Wtime() - start; \
    ++calls[kind];                         \
    return code;                           \
  } while (0)

int MPI_Alltoall(
    const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm) {
  TIMED(kAlltoall, PMPI_Alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));
}

int MPI_Alltoallv(
    const void* sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
    void* recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
    MPI_Comm comm) {
  TIMED(
      kAlltoall,
      PMPI_Alltoallv(
          sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm));
}

int MPI_Allgather(
    const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, MPI_Comm comm) {
  TIMED(
      kAllgather, PMPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));
}

int MPI_Allgatherv(
    const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
    const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm) {
  TIMED(
      kAllgather,
      PMPI_Allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm));
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  TIMED(kBcast, PMPI_Bcast(buffer, count, datatype, root, comm));
}

int MPI_Allreduce(
    const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
    MPI_Comm comm) {
  TIMED(kReduce, PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm));
}

int MPI_Reduce(
    const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
    MPI_Comm comm) {
  TIMED(kReduce, PMPI_Reduce(sendbuf, recvbuf, count, datatype, op, root, comm));
}

int MPI_Gather(
    const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
    MPI_Datatype recvtype, int root, MPI_Comm comm) {
  TIMED(
      kOther, PMPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm));
}

int MPI_Barrier(MPI_Comm comm) {
  TIMED(kOther, PMPI_Barrier(comm));
}

int MPI_Finalize(void) {
  static const char* const names[kKinds] = {"alltoall", "allgather", "bcast", "reduce", "other"};
  double most[kKinds];
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Reduce(seconds, most, kKinds, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  for (int kind = 0; kind < kKinds && rank == 0; ++kind) {
    fprintf(stderr, "stopwatch: %s %ld calls %.6f s\n", names[kind], calls[kind], most[kind]);
  }
  return PMPI_Finalize();
}
