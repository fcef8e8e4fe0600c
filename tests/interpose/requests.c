/* SPDX-License-Identifier: MIT */
/* Requests of collectives, persistent and not, mixed with requests of messages in every function of
 * MPI that takes requests. */
#include "check.h"

enum { kMost = 64, kBlock = 3 };
static int sent[kMost * kBlock], received[kMost * kBlock], gathered[kMost * kBlock];
static int message_out, message_in;

static int is_empty(const MPI_Status* status) {
  int bytes = -1, cancelled = -1;
  MPI_Get_count(status, MPI_BYTE, &bytes);
  MPI_Test_cancelled(status, &cancelled);
  return status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && bytes == 0 &&
         cancelled == 0;
}

static void fill(int iteration) {
  for (int to = 0; to < size; ++to) {
    for (int i = 0; i < kBlock; ++i) sent[to * kBlock + i] = value(iteration, rank, to, i);
  }
  memset(received, -1 - iteration, sizeof received);
  memset(gathered, -1 - iteration, sizeof gathered);
  message_out = value(iteration, rank, (rank + 1) % size, 7);
  message_in = -1 - iteration;
}

static void check_exchange(int iteration) {
  for (int from = 0; from < size; ++from) {
    for (int i = 0; i < kBlock; ++i) {
      CHECK(received[from * kBlock + i] == value(iteration, from, rank, i));
    }
  }
}

static void check_gather(int iteration) {
  for (int from = 0; from < size; ++from) {
    for (int i = 0; i < kBlock; ++i) {
      CHECK(gathered[from * kBlock + i] == value(iteration, from, 0, i));
    }
  }
}

static void check_message(int iteration) {
  const int from = (rank + size - 1) % size;
  CHECK(message_in == value(iteration, from, rank, 7));
}

/* The four requests of every round: persistent exchange, receive, send, non-blocking gather. */
enum { kExchange, kReceive, kSend, kGather, kRequests };

static void start_round(int iteration, MPI_Request requests[kRequests]) {
  fill(iteration);
  MPI_Irecv(
      &message_in, 1, MPI_INT, (rank + size - 1) % size, iteration, MPI_COMM_WORLD,
      &requests[kReceive]);
  MPI_Start(&requests[kExchange]);
  MPI_Iallgather(
      sent, kBlock, MPI_INT, gathered, kBlock, MPI_INT, MPI_COMM_WORLD, &requests[kGather]);
  MPI_Isend(
      &message_out, 1, MPI_INT, (rank + 1) % size, iteration, MPI_COMM_WORLD, &requests[kSend]);
}

static void check_round(int iteration, const MPI_Request requests[kRequests]) {
  check_exchange(iteration);
  check_gather(iteration);
  check_message(iteration);
  CHECK(requests[kExchange] != MPI_REQUEST_NULL);
  CHECK(requests[kReceive] == MPI_REQUEST_NULL);
  CHECK(requests[kSend] == MPI_REQUEST_NULL);
  CHECK(requests[kGather] == MPI_REQUEST_NULL);
}

static void poison(MPI_Status* statuses, int count) {
  memset(statuses, 0x55, (size_t)count * sizeof *statuses);
}

static void wait_all(int iteration, MPI_Request requests[kRequests]) {
  MPI_Status statuses[kRequests];
  start_round(iteration, requests);
  poison(statuses, kRequests);
  CHECK(MPI_Waitall(kRequests, requests, statuses) == MPI_SUCCESS);
  check_round(iteration, requests);
  CHECK(is_empty(&statuses[kExchange]) && is_empty(&statuses[kGather]));
  CHECK(statuses[kReceive].MPI_TAG == iteration);
}

static void test_all(int iteration, MPI_Request requests[kRequests]) {
  MPI_Status statuses[kRequests];
  int flag = 0;
  start_round(iteration, requests);
  poison(statuses, kRequests);
  for (long tries = 0; flag == 0 && tries < 2000000000L; ++tries) {
    CHECK(requests[kGather] != MPI_REQUEST_NULL && requests[kSend] != MPI_REQUEST_NULL);
    MPI_Testall(kRequests, requests, &flag, statuses);
  }
  check_round(iteration, requests);
  CHECK(is_empty(&statuses[kExchange]) && is_empty(&statuses[kGather]));
  CHECK(statuses[kReceive].MPI_TAG == iteration);
}

static void wait_any(int iteration, MPI_Request requests[kRequests], int by_test) {
  int seen[kRequests] = {0};
  start_round(iteration, requests);
  for (int done = 0; done < kRequests; ++done) {
    MPI_Status status;
    int index = -7, flag = 0;
    poison(&status, 1);
    if (by_test) {
      while (flag == 0) MPI_Testany(kRequests, requests, &index, &flag, &status);
    } else {
      MPI_Waitany(kRequests, requests, &index, &status);
    }
    CHECK(index >= 0 && index < kRequests);
    if (index < 0 || index >= kRequests) return;
    CHECK(seen[index]++ == 0);
    if (index == kExchange || index == kGather) CHECK(is_empty(&status));
    if (index == kReceive) CHECK(status.MPI_TAG == iteration);
  }
  check_round(iteration, requests);
  /* Now none is active. */
  MPI_Status status;
  int index = 0, flag = 0;
  poison(&status, 1);
  MPI_Waitany(kRequests, requests, &index, &status);
  CHECK(index == MPI_UNDEFINED && is_empty(&status));
  MPI_Testany(kRequests, requests, &index, &flag, &status);
  CHECK(index == MPI_UNDEFINED && flag == 1);
}

static void wait_some(int iteration, MPI_Request requests[kRequests], int by_test) {
  int seen[kRequests] = {0}, indices[kRequests], found = 0, done = 0;
  MPI_Status statuses[kRequests];
  start_round(iteration, requests);
  while (done < kRequests) {
    poison(statuses, kRequests);
    if (by_test) {
      MPI_Testsome(kRequests, requests, &found, indices, statuses);
    } else {
      MPI_Waitsome(kRequests, requests, &found, indices, statuses);
      CHECK(found > 0);
    }
    CHECK(found >= 0 && found <= kRequests);
    if (found < 0 || found > kRequests) return;
    for (int i = 0; i < found; ++i) {
      CHECK(seen[indices[i]]++ == 0);
      if (indices[i] == kReceive) CHECK(statuses[i].MPI_TAG == iteration);
      if (indices[i] == kGather) CHECK(is_empty(&statuses[i]));
    }
    done += found;
  }
  check_round(iteration, requests);
  MPI_Waitsome(kRequests, requests, &found, indices, statuses);
  CHECK(found == MPI_UNDEFINED);
  MPI_Testsome(kRequests, requests, &found, indices, MPI_STATUSES_IGNORE);
  CHECK(found == MPI_UNDEFINED);
}

static void one_by_one(int iteration, MPI_Request requests[kRequests]) {
  MPI_Status status;
  int flag = 0;
  start_round(iteration, requests);
  while (flag == 0) {
    poison(&status, 1);
    MPI_Request_get_status(requests[kExchange], &flag, &status);
  }
  CHECK(is_empty(&status));
  check_exchange(iteration); /* complete, and not yet completed */
  flag = 0;
  while (flag == 0) MPI_Request_get_status(requests[kGather], &flag, MPI_STATUS_IGNORE);
  check_gather(iteration);
  CHECK(requests[kGather] != MPI_REQUEST_NULL);
  flag = 0;
  while (flag == 0) MPI_Test(&requests[kGather], &flag, &status);
  CHECK(requests[kGather] == MPI_REQUEST_NULL && is_empty(&status));
  MPI_Wait(&requests[kExchange], &status);
  CHECK(is_empty(&status));
  MPI_Waitall(kRequests, requests, MPI_STATUSES_IGNORE);
  check_round(iteration, requests);
  /* An inactive request is complete at once. */
  poison(&status, 1);
  MPI_Wait(&requests[kExchange], &status);
  CHECK(is_empty(&status));
  MPI_Test(&requests[kExchange], &flag, &status);
  CHECK(flag == 1);
}

/* Persistent collectives and messages started together. */
static void start_all(void) {
  MPI_Request requests[4];
  fill(0);
  MPI_Alltoall_init(
      sent, kBlock, MPI_INT, received, kBlock, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
      &requests[0]);
  MPI_Recv_init(&message_in, 1, MPI_INT, (rank + size - 1) % size, 9, MPI_COMM_WORLD, &requests[1]);
  MPI_Send_init(&message_out, 1, MPI_INT, (rank + 1) % size, 9, MPI_COMM_WORLD, &requests[2]);
  MPI_Allgather_init(
      sent, kBlock, MPI_INT, gathered, kBlock, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
      &requests[3]);
  for (int iteration = 0; iteration < 20; ++iteration) {
    fill(iteration);
    MPI_Startall(4, requests);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    check_exchange(iteration);
    check_gather(iteration);
    check_message(iteration);
  }
  for (int i = 0; i < 4; ++i) {
    MPI_Request_free(&requests[i]);
    CHECK(requests[i] == MPI_REQUEST_NULL);
  }
}

/* 64 at once, completed in reverse (case 53). */
static void many(void) {
  enum { kMany = 64 };
  MPI_Request requests[kMany];
  static int out[kMany], in[kMany][kMost];
  for (int i = 0; i < kMany; ++i) {
    out[i] = value(i, rank, 0, 1);
    MPI_Iallgather(&out[i], 1, MPI_INT, in[i], 1, MPI_INT, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = kMany - 1; i >= 0; --i) {
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    for (int from = 0; from < size; ++from) CHECK(in[i][from] == value(i, from, 0, 1));
  }
}

/* Handles freed before a start, while active, and after their communicator (case 47). */
static void lifetimes(void) {
  MPI_Comm dup;
  MPI_Request early, late;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Alltoall_init(sent, kBlock, MPI_INT, received, kBlock, MPI_INT, dup, MPI_INFO_NULL, &early);
  MPI_Allgather_init(sent, kBlock, MPI_INT, gathered, kBlock, MPI_INT, dup, MPI_INFO_NULL, &late);
  MPI_Request_free(&early);
  fill(3);
  MPI_Start(&late);
  MPI_Comm_free(&dup);
  MPI_Wait(&late, MPI_STATUS_IGNORE);
  check_gather(3);
  fill(4);
  MPI_Start(&late);
  MPI_Wait(&late, MPI_STATUS_IGNORE);
  check_gather(4);
  fill(5);
  MPI_Start(&late);
  MPI_Request_free(&late);
  CHECK(late == MPI_REQUEST_NULL);
  MPI_Allgather(sent, kBlock, MPI_INT, gathered, kBlock, MPI_INT, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Request requests[kRequests];
  fill(0);
  MPI_Alltoall_init(
      sent, kBlock, MPI_INT, received, kBlock, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
      &requests[kExchange]);
  for (int iteration = 0; iteration < 70; iteration += 7) {
    wait_all(iteration, requests);
    test_all(iteration + 1, requests);
    wait_any(iteration + 2, requests, 0);
    wait_any(iteration + 3, requests, 1);
    wait_some(iteration + 4, requests, 0);
    wait_some(iteration + 5, requests, 1);
    one_by_one(iteration + 6, requests);
  }
  MPI_Request_free(&requests[kExchange]);
  start_all();
  many();
  lifetimes();
  return end();
}
