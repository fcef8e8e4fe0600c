// SPDX-License-Identifier: MIT
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <ferry/ferry.h>

#include "support/cases.hpp"
#include "support/errors.hpp"
#include "support/mismatch.hpp"

using namespace ferry::test;

namespace {

// The arguments of one alltoall of one int per rank, to be spoilt one at a time.
struct Arguments {
  explicit Arguments(const Comm& c)
      : comm(c.get()), sent(static_cast<std::size_t>(c.size()) * 4), received(sent.size()) {
    sendbuf = sent.data();
    recvbuf = received.data();
  }
  int alltoall() const {
    return ferry_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
  }
  int alltoall_init(ferry_request* request) const {
    return ferry_alltoall_init(
        sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, MPI_INFO_NULL, request);
  }
  int allgather() const {
    return ferry_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
  }
  int bcast(int root) const { return ferry_bcast(recvbuf, recvcount, recvtype, root, comm); }

  MPI_Comm comm;
  std::vector<int> sent;
  std::vector<int> received;
  const void* sendbuf = nullptr;
  void* recvbuf = nullptr;
  MPI_Count sendcount = 1;
  MPI_Count recvcount = 1;
  MPI_Datatype sendtype = MPI_INT;
  MPI_Datatype recvtype = MPI_INT;
};

// All ranks still communicate right on comm.
void check_still_works(const Comm& comm, std::uint64_t iteration) {
  const Arena send(5000 * static_cast<std::size_t>(comm.size()));
  const Arena recv(5000 * static_cast<std::size_t>(comm.size()));
  for (const std::size_t bytes : {8, 5000}) {
    for (const Operation op : {Operation::alltoall, Operation::allgather, Operation::bcast}) {
      check_point({op, bytes}, Form::blocking, Memory::heap, comm, iteration, 2, send, recv);
    }
  }
}

} // namespace

TEST_SUITE_BEGIN("errors");

TEST_CASE("errors: NULL buffers with a count above 0") {
  const Comm& comm = zoo()[0];
  Arguments bad(comm);
  bad.sendbuf = nullptr;
  check_error(bad.alltoall(), MPI_ERR_BUFFER, "ferry_alltoall", comm, {"sendbuf"});
  check_error(bad.allgather(), MPI_ERR_BUFFER, "ferry_allgather", comm, {"sendbuf"});
  bad.sendbuf = bad.sent.data();
  bad.recvbuf = nullptr;
  check_error(bad.alltoall(), MPI_ERR_BUFFER, "ferry_alltoall", comm, {"recvbuf"});
  check_error(bad.bcast(0), MPI_ERR_BUFFER, "ferry_bcast", comm, {"buf"});
  check_still_works(comm, 1);
}

TEST_CASE("errors: negative counts") {
  const Comm& comm = zoo()[0];
  Arguments bad(comm);
  bad.sendcount = -3;
  check_error(bad.alltoall(), MPI_ERR_COUNT, "ferry_alltoall", comm, {"sendbuf", "-3"});
  bad.sendcount = 1;
  bad.recvcount = -4;
  check_error(bad.allgather(), MPI_ERR_COUNT, "ferry_allgather", comm, {"recvbuf", "-4"});
  check_error(bad.bcast(0), MPI_ERR_COUNT, "ferry_bcast", comm, {"buffer", "-4"});
  check_still_works(comm, 2);
}

TEST_CASE("errors: root out of range") {
  const Comm& comm = zoo()[0];
  const Arguments good(comm);
  check_error(good.bcast(-1), MPI_ERR_ROOT, "ferry_bcast", comm, {"root", "-1"});
  const std::string size = std::to_string(comm.size());
  check_error(good.bcast(comm.size()), MPI_ERR_ROOT, "ferry_bcast", comm, {"root", size.c_str()});
  check_still_works(comm, 3);
}

TEST_CASE("errors: types: null, not committed") {
  const Comm& comm = zoo()[0];
  Arguments bad(comm);
  bad.sendtype = MPI_DATATYPE_NULL;
  check_error(bad.alltoall(), MPI_ERR_TYPE, "ferry_alltoall", comm, {"sendbuf"});
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(1, MPI_INT, &type);
  bad.sendtype = type;
  check_error(bad.alltoall(), MPI_ERR_TYPE, "ferry_alltoall", comm, {"commit"});
  MPI_Type_free(&type);
  check_still_works(comm, 4);
}

TEST_CASE("errors: MPI_COMM_NULL") {
  Arguments bad(zoo()[0]);
  bad.comm = MPI_COMM_NULL;
  const int code = bad.alltoall();
  CHECK(class_of(code) == MPI_ERR_COMM);
  CHECK(std::string(ferry_error_text()).find("ferry_alltoall") != std::string::npos);
  CHECK(std::string(ferry_error_text()).find("MPI_COMM_NULL") != std::string::npos);
}

TEST_CASE("errors: intercommunicator") {
  if (world().size < 2) return;
  const Comm half = split(world().rank % 2, world().rank);
  MPI_Comm inter = MPI_COMM_NULL;
  const int remote_leader = world().rank % 2 == 0 ? 1 : 0;
  MPI_Intercomm_create(half.get(), 0, MPI_COMM_WORLD, remote_leader, 5, &inter);
  Arguments bad(zoo()[0]);
  bad.comm = inter;
  const int code = bad.alltoall();
  CHECK(class_of(code) == MPI_ERR_COMM);
  CHECK(std::string(ferry_error_text()).find("intercommunicator") != std::string::npos);
  CHECK(class_of(bad.bcast(0)) == MPI_ERR_COMM);
  MPI_Comm_free(&inter);
}

TEST_CASE("errors: start, free and wait of handles in the wrong state") {
  const Comm& comm = zoo()[0];
  const Arguments good(comm);
  ferry_request request = FERRY_REQUEST_NULL;
  CHECK(good.alltoall_init(&request) == MPI_SUCCESS);
  CHECK(ferry_start(&request) == MPI_SUCCESS);
  check_error(ferry_start(&request), MPI_ERR_REQUEST, "ferry_start", comm, {"active"});
  check_error(
      ferry_request_free(&request), MPI_ERR_REQUEST, "ferry_request_free", comm, {"active"});
  CHECK(request != FERRY_REQUEST_NULL);
  CHECK(ferry_wait(&request) == MPI_SUCCESS);
  CHECK(ferry_request_free(&request) == MPI_SUCCESS);

  int value = 1;
  CHECK(ferry_ibcast(&value, 1, MPI_INT, 0, comm.get(), &request) == MPI_SUCCESS);
  check_error(ferry_start(&request), MPI_ERR_REQUEST, "ferry_start", comm, {"persistent"});
  CHECK(ferry_wait(&request) == MPI_SUCCESS);
  check_still_works(comm, 5);
}

TEST_CASE("errors: the null request and NULL in place of a request") {
  ferry_request null = FERRY_REQUEST_NULL;
  const int start = ferry_start(&null);
  CHECK(class_of(start) == MPI_ERR_REQUEST);
  CHECK(std::string(ferry_error_text()).find("ferry_start") != std::string::npos);
  CHECK(class_of(ferry_startall(1, &null)) == MPI_ERR_REQUEST);
  CHECK(class_of(ferry_request_free(&null)) == MPI_ERR_REQUEST);
  CHECK(ferry_start(nullptr) != MPI_SUCCESS);
  const Comm& comm = zoo()[0];
  int value = 0;
  CHECK(ferry_ibcast(&value, 1, MPI_INT, 0, comm.get(), nullptr) != MPI_SUCCESS);
  CHECK(ferry_bcast_init(&value, 1, MPI_INT, 0, comm.get(), MPI_INFO_NULL, nullptr) != MPI_SUCCESS);
  check_still_works(comm, 6);
}

TEST_CASE("errors: case 82: sizes differ between ranks, persistent: every rank gets the error") {
  const Comm comm = duplicate();
  for (const Operation op : {Operation::alltoall, Operation::allgather, Operation::bcast}) {
    if (comm.size() == 1) continue;
    for (const std::size_t bytes : {8, 700, 100000}) {
      for (const int delta : {1, -1}) {
        const Mismatch m{op, bytes, delta};
        ferry_request request = FERRY_REQUEST_NULL;
        const int code = run_mismatch(m, Form::persistent, comm, &request);
        CHECK_MESSAGE(class_of(code) == MPI_ERR_TRUNCATE, describe(m), ": ", ferry_error_text());
        CHECK(request == FERRY_REQUEST_NULL);
        CHECK(std::string(ferry_error_text()).find("_init") != std::string::npos);
      }
    }
  }
  check_still_works(comm, 7);
}

TEST_CASE("errors: case 82: sizes differ between ranks, blocking: who receives gets the error") {
  // Rank 0 of a broadcast only sends.
  const Comm comm = duplicate();
  for (const Operation op : {Operation::alltoall, Operation::allgather, Operation::bcast}) {
    if (comm.size() == 1) continue;
    for (const std::size_t bytes : {8, 700, 100000}) {
      for (const int delta : {1, -1}) {
        const Mismatch m{op, bytes, delta};
        const int code = run_mismatch(m, Form::blocking, comm, nullptr);
        const bool sees = op != Operation::bcast || comm.rank() != 0;
        if (sees)
          CHECK_MESSAGE(class_of(code) == MPI_ERR_TRUNCATE, describe(m), ": ", ferry_error_text());
        check_still_works(comm, 8);
      }
    }
  }
}

TEST_CASE("errors: case 82: one rank sends blocks of another size than it receives") {
  const Comm& comm = zoo()[0];
  Arguments bad(comm);
  bad.sendcount = 2;
  check_error(bad.alltoall(), MPI_ERR_TRUNCATE, "ferry_alltoall", comm, {"8 bytes", "4 bytes"});
  check_error(bad.allgather(), MPI_ERR_TRUNCATE, "ferry_allgather", comm, {"8 bytes", "4 bytes"});
  ferry_request request = FERRY_REQUEST_NULL;
  check_error(bad.alltoall_init(&request), MPI_ERR_TRUNCATE, "ferry_alltoall_init", comm, {});
  check_still_works(comm, 9);
}

TEST_CASE("errors: a call description of the wrong size") {
  ferry_call call{};
  int value = 0;
  call.size = sizeof call + 8;
  call.operation = FERRY_BCAST;
  call.form = FERRY_BLOCKING;
  call.recvbuf = &value;
  call.recvcount = 1;
  call.recvtype = MPI_INT;
  call.comm = MPI_COMM_WORLD;
  CHECK(class_of(ferry_collective(&call, nullptr)) == MPI_ERR_ARG);
  call.size = sizeof call;
  call.operation = static_cast<ferry_operation>(0);
  CHECK(ferry_collective(&call, nullptr) != MPI_SUCCESS);
}

TEST_CASE("errors: the communicator's handler is called once, with the code that is returned") {
  const HandledComm handled;
  Arguments bad(handled.comm());
  CHECK(bad.alltoall() == MPI_SUCCESS);
  CHECK(HandledComm::calls() == 0);
  bad.sendcount = -1;
  const int code = bad.alltoall();
  CHECK(HandledComm::calls() == 1);
  CHECK(handler_code() == code);
  CHECK(bad.bcast(-7) != MPI_SUCCESS);
  CHECK(HandledComm::calls() == 1);
  bad.sendcount = 1;
  ferry_request request = FERRY_REQUEST_NULL;
  CHECK(bad.alltoall_init(&request) == MPI_SUCCESS);
  CHECK(ferry_start(&request) == MPI_SUCCESS);
  CHECK(ferry_start(&request) != MPI_SUCCESS);
  CHECK(HandledComm::calls() == 1);
  CHECK(ferry_wait(&request) == MPI_SUCCESS);
  CHECK(ferry_request_free(&request) == MPI_SUCCESS);
  CHECK(HandledComm::calls() == 0);
}

TEST_CASE("errors: FERRY_NO_ERROR_HANDLER returns the code and calls no handler") {
  const HandledComm handled;
  int value = 0;
  ferry_call call{};
  call.size = sizeof call;
  call.operation = FERRY_BCAST;
  call.form = FERRY_BLOCKING;
  call.root = -1;
  call.recvbuf = &value;
  call.recvcount = 1;
  call.recvtype = MPI_INT;
  call.comm = handled.comm().get();
  CHECK(class_of(ferry_collective(&call, nullptr)) == MPI_ERR_ROOT);
  CHECK(HandledComm::calls() == 1);
  call.flags = FERRY_NO_ERROR_HANDLER;
  check_error(
      ferry_collective(&call, nullptr), MPI_ERR_ROOT, "ferry_bcast", handled.comm(), {"root"});
  CHECK(HandledComm::calls() == 0);
}

TEST_SUITE_END();
