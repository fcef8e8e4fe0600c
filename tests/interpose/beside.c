/* SPDX-License-Identifier: MIT */
/* What is not Ferry's business works beside it: neighbour collectives (case 13), files, scans,
 * operations of the user, communicators of MPI_Comm_idup (case 62), inter-communicators. */
#include "check.h"

static void neighbours(void) {
  const int period = 1;
  int all[2] = {-1, -1};
  MPI_Comm ring;
  MPI_Request request;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &period, 0, &ring);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, ring);
  CHECK(all[0] == left && all[1] == right);
  all[0] = all[1] = -1;
  MPI_Ineighbor_allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, ring, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(all[0] == left && all[1] == right);
  MPI_Comm_free(&ring);
}

static void file(void) {
  char name[] = "/tmp/beside-XXXXXX";
  if (rank == 0) {
    const int made = mkstemp(name);
    CHECK(made >= 0);
    close(made);
  }
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_File handle;
  CHECK(
      MPI_File_open(
          MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &handle) ==
      MPI_SUCCESS);
  enum { kCount = 1000 };
  static int out[kCount], in[kCount];
  MPI_Datatype strided;
  for (int i = 0; i < kCount; ++i) out[i] = value(1, rank, 0, i);
  MPI_Type_vector(kCount, 1, size, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  MPI_File_set_view(
      handle, rank * (MPI_Offset)sizeof(int), MPI_INT, strided, "native", MPI_INFO_NULL);
  MPI_File_write_all(handle, out, kCount, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_seek(handle, 0, MPI_SEEK_SET);
  MPI_File_read_all(handle, in, kCount, MPI_INT, MPI_STATUS_IGNORE);
  for (int i = 0; i < kCount; ++i) CHECK(in[i] == value(1, rank, 0, i));
  MPI_File_close(&handle);
  MPI_Type_free(&strided);
}

/* Not commutative: 2 x 2 matrices of integers. */
static void multiply(void* left, void* right, int* count, MPI_Datatype* type) {
  const int* a = left;
  int* b = right;
  (void)type;
  for (int i = 0; i < *count; ++i, a += 4, b += 4) {
    const int product[4] = {
        a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3]};
    memcpy(b, product, sizeof product);
  }
}

static void operations(void) {
  MPI_Op op;
  MPI_Datatype matrix;
  int expected[4] = {1, 0, 0, 1}, mine[4] = {1, rank + 1, 0, rank % 2 == 0 ? 1 : -1}, result[4];
  MPI_Type_contiguous(4, MPI_INT, &matrix);
  MPI_Type_commit(&matrix);
  MPI_Op_create(multiply, 0, &op);
  for (int from = size - 1; from >= 0; --from) {
    int a[4] = {1, from + 1, 0, from % 2 == 0 ? 1 : -1}, one = 1;
    multiply(a, expected, &one, NULL);
  }
  MPI_Allreduce(mine, result, 1, matrix, op, MPI_COMM_WORLD);
  CHECK(memcmp(result, expected, sizeof expected) == 0);
  memset(result, 0, sizeof result);
  MPI_Reduce(mine, result, 1, matrix, op, size - 1, MPI_COMM_WORLD);
  CHECK(rank != size - 1 || memcmp(result, expected, sizeof expected) == 0);
  int sum = 0;
  MPI_Scan(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == rank * (rank + 1) / 2);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == size * (size - 1) / 2);
  MPI_Op_free(&op);
  MPI_Type_free(&matrix);
}

static void idup(void) {
  MPI_Comm comms[2];
  MPI_Request requests[2];
  int all[64];
  for (int i = 0; i < 2; ++i) MPI_Comm_idup(MPI_COMM_WORLD, &comms[i], &requests[i]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 1; i >= 0; --i) {
    const int mine = value(i, rank, 0, 0);
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comms[i]);
    for (int from = 0; from < size; ++from) CHECK(all[from] == value(i, from, 0, 0));
    MPI_Comm_disconnect(&comms[i]);
  }
}

/* Groups of one and of all others, in blocking and non-blocking form (case 50). */
static void over_the_border(void) {
  MPI_Comm group, both;
  MPI_Request request;
  int others = 0, out[64], all[64];
  const int side = rank > 0;
  MPI_Comm_split(MPI_COMM_WORLD, side, rank, &group);
  MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, 1 - side, 6, &both);
  MPI_Comm_remote_size(both, &others);
  const int first = 1 - side; /* of the others, in the world */
  for (int form = 0; form < 4; ++form) {
    memset(all, -1, sizeof all);
    for (int to = 0; to < others; ++to) out[to] = value(form, rank, form < 2 ? 0 : first + to, 0);
    if (form == 0) MPI_Allgather(out, 1, MPI_INT, all, 1, MPI_INT, both);
    if (form == 1) MPI_Iallgather(out, 1, MPI_INT, all, 1, MPI_INT, both, &request);
    if (form == 2) MPI_Alltoall(out, 1, MPI_INT, all, 1, MPI_INT, both);
    if (form == 3) MPI_Ialltoall(out, 1, MPI_INT, all, 1, MPI_INT, both, &request);
    if (form % 2 == 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int from = 0; from < others; ++from) {
      CHECK(all[from] == value(form, first + from, form < 2 ? 0 : rank, 0));
    }
  }
  MPI_Comm_free(&both);
  MPI_Comm_free(&group);
}

/* Messages while a request of Ferry lives, and one-sided operations. */
static void others_with_a_token(void) {
  int all[64], message = -1, flag = 0;
  MPI_Request token, request;
  MPI_Allgather_init(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &token);
  MPI_Irecv(&message, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, &request);
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  CHECK(flag == 0);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Irecv(&message, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, &request);
  MPI_Send(&rank, 1, MPI_INT, rank, 8, MPI_COMM_WORLD);
  MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
  CHECK(message == rank);
  MPI_Isend(&rank, 1, MPI_INT, MPI_PROC_NULL, 8, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  MPI_Request_free(&token);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  neighbours();
  file();
  operations();
  idup();
  if (size > 1) over_the_border();
  others_with_a_token();
  return end();
}
