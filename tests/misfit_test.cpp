// SPDX-License-Identifier: MIT
// Case 82: ranks make calls that do not fit together. Whoever meets another call gets an error,
// nobody hangs, and the communicator works on.
#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "matrix/collective_grid.hpp"
#include "support/communicators.hpp"
#include "support/errors.hpp"

using namespace ferry::test;

namespace {

// Room for whatever the calls below name.
struct Room {
  explicit Room(const Comm& c)
      : comm(c.get()),
        ranks(static_cast<std::size_t>(c.size())),
        send(ranks * 70000, 1),
        recv(ranks * 140000),
        counts(ranks),
        displs(ranks) {}

  int alltoall(MPI_Count bytes) {
    return ferry_alltoall(send.data(), bytes, MPI_BYTE, recv.data(), bytes, MPI_BYTE, comm);
  }
  int alltoallv(MPI_Count bytes) {
    set(bytes);
    return ferry_alltoallv(
        send.data(), counts.data(), displs.data(), MPI_BYTE, recv.data(), counts.data(),
        displs.data(), MPI_BYTE, comm);
  }
  int allgather(MPI_Count bytes) {
    return ferry_allgather(send.data(), bytes, MPI_BYTE, recv.data(), bytes, MPI_BYTE, comm);
  }
  int gather(MPI_Count bytes, int root) {
    return ferry_gather(send.data(), bytes, MPI_BYTE, recv.data(), bytes, MPI_BYTE, root, comm);
  }
  int allreduce(MPI_Count bytes) {
    return ferry_allreduce(send.data(), recv.data(), bytes, MPI_UINT8_T, MPI_BXOR, comm);
  }
  int barrier() const { return ferry_barrier(comm); }

  // Blocks of equal length, one behind the other.
  void set(MPI_Count bytes) {
    for (std::size_t i = 0; i < ranks; ++i) {
      counts[i] = bytes;
      displs[i] = static_cast<MPI_Aint>(i) * bytes;
    }
  }

  MPI_Comm comm;
  std::size_t ranks;
  std::vector<unsigned char> send;
  std::vector<unsigned char> recv;
  std::vector<MPI_Count> counts;
  std::vector<MPI_Aint> displs;
};

void check_works(const Comm& comm) {
  std::vector<int> all(static_cast<std::size_t>(comm.size()), -1);
  std::vector<int> expected(all.size());
  std::iota(expected.begin(), expected.end(), 0);
  const int own = comm.rank();
  int sum = -1;
  CHECK(ferry_allgather(&own, 1, MPI_INT, all.data(), 1, MPI_INT, comm.get()) == MPI_SUCCESS);
  CHECK(all == expected);
  CHECK(ferry_allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm.get()) == MPI_SUCCESS);
  CHECK(sum == std::accumulate(expected.begin(), expected.end(), 0));
}

using Make = std::function<int(Room&)>;

// The last rank makes one call, all others another. Who has sent through slots and got what it
// expects has left before it could know.
void check_misfit(
    const std::string& what, const Make& one, const Make& others, bool one_may_pass = false) {
  const Comm comm = duplicate();
  if (comm.size() == 1 || ferry_is_off() || environment("MPIR_CVAR_NUM_CLIQUES", "") != "") return;
  if (environment("FERRY_NODES", "real") != "real") return; // ends the use of the communicator
  Room room(comm);
  note(what);
  const bool last = comm.rank() == comm.size() - 1;
  const int code = last ? one(room) : others(room);
  INFO(what);
  if (code != MPI_SUCCESS || !last || !one_may_pass) CHECK(class_of(code) == MPI_ERR_TRUNCATE);
  CHECK_MESSAGE(
      std::string(ferry_error_text()).find("; ") != std::string::npos, ferry_error_text());
  MPI_Barrier(comm.get()); // others may still look at this rank's buffers until they have returned
  check_works(comm);
}

} // namespace

TEST_CASE("misfit: alltoall meets alltoallv") {
  for (const MPI_Count bytes : {8, 9000, 70000}) {
    check_misfit(
        "alltoall against alltoallv of " + std::to_string(bytes),
        [&](Room& room) { return room.alltoall(bytes); },
        [&](Room& room) { return room.alltoallv(bytes); });
  }
}

TEST_CASE("misfit: sizes of a pair differ") {
  for (const MPI_Count bytes : {8, 3000, 9000, 70000}) {
    check_misfit(
        "alltoallv, a pair of " + std::to_string(bytes),
        [&](Room& room) { return room.alltoallv(bytes); },
        [&](Room& room) {
          room.set(bytes);
          std::vector<MPI_Count> longer = room.counts;
          longer.back() += 8; // from the last rank
          return ferry_alltoallv(
              room.send.data(), room.counts.data(), room.displs.data(), MPI_BYTE, room.recv.data(),
              longer.data(), room.displs.data(), MPI_BYTE, room.comm);
        },
        bytes < 4000);
  }
}

TEST_CASE("misfit: allreduce meets allgather") {
  for (const MPI_Count bytes : {8, 9000, 70000}) {
    check_misfit(
        "allreduce against allgather of " + std::to_string(bytes),
        [&](Room& room) { return room.allreduce(bytes); },
        [&](Room& room) { return room.allgather(bytes); });
  }
}

TEST_CASE("misfit: barrier meets allgather and allreduce") {
  for (const MPI_Count bytes : {8, 70000}) {
    check_misfit(
        "barrier against allgather of " + std::to_string(bytes),
        [](Room& room) { return room.barrier(); },
        [&](Room& room) { return room.allgather(bytes); });
    check_misfit(
        "allreduce against barrier of " + std::to_string(bytes),
        [&](Room& room) { return room.allreduce(bytes); },
        [](Room& room) { return room.barrier(); });
  }
}

TEST_CASE("misfit: persistent plans of different sizes, operations and roots") {
  const auto init = [](Room& room, MPI_Count bytes) {
    room.set(bytes);
    ferry_request request = FERRY_REQUEST_NULL;
    const int code = ferry_alltoallv_init(
        room.send.data(), room.counts.data(), room.displs.data(), MPI_BYTE, room.recv.data(),
        room.counts.data(), room.displs.data(), MPI_BYTE, room.comm, MPI_INFO_NULL, &request);
    CHECK(request == FERRY_REQUEST_NULL);
    return code;
  };
  const auto init_gather = [](Room& room, int root) {
    ferry_request request = FERRY_REQUEST_NULL;
    const int code = ferry_gather_init(
        room.send.data(), 8, MPI_BYTE, room.recv.data(), 8, MPI_BYTE, root, room.comm,
        MPI_INFO_NULL, &request);
    CHECK(request == FERRY_REQUEST_NULL);
    return code;
  };
  check_misfit(
      "sizes", [&](Room& room) { return init(room, 8); },
      [&](Room& room) { return init(room, 9); });
  check_misfit(
      "operations", [&](Room& room) { return init(room, 8); },
      [&](Room& room) { return init_gather(room, 0); });
  check_misfit(
      "roots", [&](Room& room) { return init_gather(room, 0); },
      [&](Room& room) { return init_gather(room, 1); });
}

namespace {

// An argument error is found on every rank before a byte moves.
void check_arguments(
    const Comm& comm, int code, int error_class, const char* function, const char* word) {
  check_error(code, error_class, function, comm, {word});
}

} // namespace

TEST_CASE("arguments: arrays that are missing, negative counts, roots, blocks for oneself") {
  const Comm& comm = zoo()[1];
  Room room(comm);
  room.set(4);
  const auto v = [&](const MPI_Count* sent, const MPI_Aint* from, const MPI_Count* received,
                     const MPI_Aint* to) {
    return ferry_alltoallv(
        room.send.data(), sent, from, MPI_BYTE, room.recv.data(), received, to, MPI_BYTE,
        comm.get());
  };
  const MPI_Count* counts = room.counts.data();
  const MPI_Aint* displs = room.displs.data();
  const char* name = "ferry_alltoallv";
  check_arguments(comm, v(nullptr, displs, counts, displs), MPI_ERR_ARG, name, "sendbuf");
  check_arguments(comm, v(counts, nullptr, counts, displs), MPI_ERR_ARG, name, "sendbuf");
  check_arguments(comm, v(counts, displs, nullptr, displs), MPI_ERR_ARG, name, "recvbuf");
  check_arguments(comm, v(counts, displs, counts, nullptr), MPI_ERR_ARG, name, "recvbuf");
  std::vector<MPI_Count> wrong = room.counts;
  wrong.back() = -5;
  check_arguments(comm, v(counts, displs, wrong.data(), displs), MPI_ERR_COUNT, name, "-5");
  wrong = room.counts;
  wrong[static_cast<std::size_t>(comm.rank())] = 9;
  check_arguments(comm, v(counts, displs, wrong.data(), displs), MPI_ERR_TRUNCATE, name, "itself");
  ferry_request request = FERRY_REQUEST_NULL;
  const auto scatter = [&](int root) {
    return ferry_scatter_init(
        room.send.data(), 4, MPI_BYTE, room.recv.data(), 4, MPI_BYTE, root, comm.get(),
        MPI_INFO_NULL, &request);
  };
  check_arguments(comm, scatter(comm.size()), MPI_ERR_ROOT, "ferry_scatter_init", "root");
  check_arguments(
      comm,
      ferry_reduce_scatter(
          room.send.data(), room.recv.data(), nullptr, MPI_INT, MPI_SUM, comm.get()),
      MPI_ERR_ARG, "ferry_reduce_scatter", "counts");
  check_arguments(
      comm,
      ferry_ireduce(
          room.send.data(), room.send.data(), 4, MPI_INT, MPI_SUM, comm.rank(), comm.get(),
          &request),
      MPI_ERR_BUFFER, "ferry_ireduce", "same");
  check_works(comm);
}

TEST_CASE("arguments: a ferry_call of the first version is understood, others are not") {
  const Comm& comm = zoo()[1];
  const int own = comm.rank();
  std::vector<int> all(static_cast<std::size_t>(comm.size()), -1);
  ferry_call call{};
  call.operation = FERRY_ALLGATHER;
  call.form = FERRY_BLOCKING;
  call.sendbuf = &own;
  call.recvbuf = all.data();
  call.sendcount = call.recvcount = 1;
  call.sendtype = call.recvtype = MPI_INT;
  call.comm = comm.get();
  call.size = offsetof(ferry_call, op);
  CHECK(ferry_collective(&call, nullptr) == MPI_SUCCESS);
  CHECK(all.back() == comm.size() - 1);
  call.size = sizeof call - 1;
  CHECK(class_of(ferry_collective(&call, nullptr)) == MPI_ERR_ARG);
  call.size = sizeof call;
  for (const int operation : {0, FERRY_REDUCE + 1}) {
    call.operation = static_cast<ferry_operation>(operation);
    check_error(
        ferry_collective(&call, nullptr), MPI_ERR_ARG, "ferry_collective", comm, {"operation"});
  }
  // An operation by its arrays, as data.
  std::vector<MPI_Count> counts(all.size(), 1);
  std::vector<MPI_Aint> displs(all.size());
  std::iota(displs.begin(), displs.end(), 0);
  call.operation = FERRY_ALLGATHERV;
  call.recvcounts = counts.data();
  call.rdispls = displs.data();
  all.assign(all.size(), -1);
  CHECK(ferry_collective(&call, nullptr) == MPI_SUCCESS);
  CHECK(all.back() == comm.size() - 1);
  call.recvcounts = nullptr;
  check_error(ferry_collective(&call, nullptr), MPI_ERR_ARG, "ferry_allgatherv", comm, {"recvbuf"});
}
