// SPDX-License-Identifier: MIT
#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <ferry/ferry.h>

#include "support/cases.hpp"
#include "support/grid.hpp"

using namespace ferry::test;

namespace {

constexpr Operation kOperations[] = {Operation::alltoall, Operation::allgather, Operation::bcast};

// Exchanges with their own memory, so that many can be under way at once.
struct Flight {
  Flight(Operation op, std::size_t bytes, const Comm& comm, Memory memory, int root = 0)
      : send(bytes * static_cast<std::size_t>(comm.size())),
        recv(bytes * static_cast<std::size_t>(comm.size())),
        exchange(shape(op, bytes, root), comm, memory, send, recv) {}

  static Shape shape(Operation op, std::size_t bytes, int root) {
    Shape s{op, bytes};
    s.root = root;
    return s;
  }

  Arena send;
  Arena recv;
  Exchange exchange;
  ferry_request request = FERRY_REQUEST_NULL;
};

// Flights of mixed kinds and sizes; the same on every rank.
std::vector<std::unique_ptr<Flight>> mixed_flights(int count, const Comm& comm) {
  constexpr std::size_t kSizes[] = {8, 600, 0, 5000, 1, 70000, 1024};
  std::vector<std::unique_ptr<Flight>> flights;
  for (int i = 0; i < count; ++i) {
    const auto n = static_cast<std::size_t>(i);
    flights.push_back(std::make_unique<Flight>(
        kOperations[n % 3], kSizes[n % 7], comm, static_cast<Memory>(n % kMemories),
        i % comm.size()));
  }
  return flights;
}

void check_all(const std::vector<std::unique_ptr<Flight>>& flights, std::uint64_t iteration) {
  for (std::size_t i = 0; i < flights.size(); ++i) {
    const std::string problem = flights[i]->exchange.verify(iteration + i);
    CHECK_MESSAGE(problem == "", "operation ", i, ": ", problem);
  }
}

void begin_all(
    const std::vector<std::unique_ptr<Flight>>& flights, Form form, std::uint64_t iteration) {
  for (std::size_t i = 0; i < flights.size(); ++i) {
    flights[i]->exchange.prepare(iteration + i);
    const int rc = flights[i]->exchange.call(form, &flights[i]->request);
    CHECK_MESSAGE(rc == MPI_SUCCESS, ferry_error_text());
  }
}

std::vector<ferry_request> requests_of(const std::vector<std::unique_ptr<Flight>>& flights) {
  std::vector<ferry_request> requests;
  for (const auto& flight : flights) requests.push_back(flight->request);
  return requests;
}

} // namespace

TEST_SUITE_BEGIN("handles");

TEST_CASE("handles: case 53: 64 operations at once, waited in order, reverse and random order") {
  const auto flights = mixed_flights(64, zoo()[0]);
  std::vector<std::size_t> order(flights.size());
  for (std::uint64_t round = 0; round < 3; ++round) {
    note("round " + std::to_string(round));
    begin_all(flights, Form::nonblocking, round * 1000);
    std::iota(order.begin(), order.end(), 0);
    if (round == 1) std::reverse(order.begin(), order.end());
    // Each rank its own order.
    if (round == 2) {
      std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(world().rank)));
    }
    for (const std::size_t i : order) CHECK(ferry_wait(&flights[i]->request) == MPI_SUCCESS);
    check_all(flights, round * 1000);
  }
}

TEST_CASE("handles: case 53: whichever completes first is taken first, by test") {
  const auto flights = mixed_flights(64, zoo()[0]);
  begin_all(flights, Form::nonblocking, 500);
  std::size_t left = flights.size();
  for (int i = 0; i < kTries && left > 0; ++i) {
    Flight& flight = *flights[static_cast<std::size_t>(i) % flights.size()];
    if (flight.request == FERRY_REQUEST_NULL) continue;
    int flag = 0;
    CHECK(ferry_test(&flight.request, &flag) == MPI_SUCCESS);
    if (flag != 0) --left;
    if (flag == 0) std::this_thread::yield();
    CHECK((flag != 0) == (flight.request == FERRY_REQUEST_NULL));
  }
  check_all(flights, 500);
}

TEST_CASE("handles: waitall and testall over mixed operations and null requests") {
  auto flights = mixed_flights(9, zoo()[0]);
  for (const bool by_wait : {true, false}) {
    begin_all(flights, Form::nonblocking, by_wait ? 100 : 200);
    auto requests = requests_of(flights);
    requests.insert(requests.begin() + 3, FERRY_REQUEST_NULL);
    const int count = static_cast<int>(requests.size());
    if (by_wait) {
      CHECK(ferry_waitall(count, requests.data()) == MPI_SUCCESS);
    } else {
      int flag = 0;
      for (int i = 0; i < kTries && flag == 0; ++i) {
        CHECK(ferry_testall(count, requests.data(), &flag) == MPI_SUCCESS);
        std::this_thread::yield();
      }
    }
    for (const ferry_request request : requests) CHECK(request == FERRY_REQUEST_NULL);
    check_all(flights, by_wait ? 100 : 200);
  }
}

TEST_CASE("handles: case 44: startall of an alltoall and a broadcast, either order") {
  const Comm& comm = zoo()[0];
  for (const bool swapped : {false, true}) {
    std::vector<std::unique_ptr<Flight>> flights;
    flights.push_back(std::make_unique<Flight>(Operation::alltoall, 100, comm, Memory::ferry));
    flights.push_back(std::make_unique<Flight>(Operation::bcast, 9000, comm, Memory::heap));
    if (swapped) std::swap(flights[0], flights[1]);
    for (const auto& flight : flights) {
      CHECK(flight->exchange.call(Form::persistent, &flight->request) == MPI_SUCCESS);
    }
    auto requests = requests_of(flights);
    for (std::uint64_t start = 0; start < 5; ++start) {
      for (std::uint64_t i = 0; i < 2; ++i) flights[i]->exchange.prepare(start * 10 + i);
      CHECK(ferry_startall(2, requests.data()) == MPI_SUCCESS);
      CHECK(ferry_waitall(2, requests.data()) == MPI_SUCCESS);
      check_all(flights, start * 10);
    }
    for (ferry_request& request : requests) CHECK(ferry_request_free(&request) == MPI_SUCCESS);
  }
}

TEST_CASE("handles: several persistent handles started in one order, waited in another") {
  const auto flights = mixed_flights(12, zoo()[1]);
  for (const auto& flight : flights) {
    CHECK(flight->exchange.call(Form::persistent, &flight->request) == MPI_SUCCESS);
  }
  std::vector<std::size_t> order(flights.size());
  for (std::uint64_t start = 0; start < 5; ++start) {
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(start)));
    for (const std::size_t i : order) {
      flights[i]->exchange.prepare(start * 100 + i);
      CHECK(ferry_start(&flights[i]->request) == MPI_SUCCESS);
    }
    std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(world().rank)));
    for (const std::size_t i : order) CHECK(ferry_wait(&flights[i]->request) == MPI_SUCCESS);
    check_all(flights, start * 100);
  }
  for (const auto& flight : flights) CHECK(ferry_request_free(&flight->request) == MPI_SUCCESS);
}

TEST_CASE("handles: blocking calls while nonblocking and persistent ones are under way") {
  const auto flights = mixed_flights(7, zoo()[0]);
  Flight persistent(Operation::allgather, 3000, zoo()[0], Memory::ferry);
  CHECK(persistent.exchange.call(Form::persistent, &persistent.request) == MPI_SUCCESS);
  for (std::uint64_t round = 0; round < 3; ++round) {
    begin_all(flights, Form::nonblocking, round * 100);
    persistent.exchange.prepare(round + 5000);
    CHECK(ferry_start(&persistent.request) == MPI_SUCCESS);
    const Arena send(256 * static_cast<std::size_t>(world().size));
    const Arena recv(256 * static_cast<std::size_t>(world().size));
    check_point(
        {Operation::alltoall, 256}, Form::blocking, Memory::heap, zoo()[0], 77, 3, send, recv);
    for (const auto& flight : flights) CHECK(ferry_wait(&flight->request) == MPI_SUCCESS);
    CHECK(ferry_wait(&persistent.request) == MPI_SUCCESS);
    CHECK(persistent.exchange.verify(round + 5000) == "");
    check_all(flights, round * 100);
  }
  CHECK(ferry_request_free(&persistent.request) == MPI_SUCCESS);
}

TEST_CASE("handles: an inactive or null handle is complete at once") {
  Flight flight(Operation::alltoall, 64, zoo()[0], Memory::heap);
  CHECK(flight.exchange.call(Form::persistent, &flight.request) == MPI_SUCCESS);
  ferry_request null = FERRY_REQUEST_NULL;
  for (ferry_request* request : {&flight.request, &null}) {
    int flag = 0;
    CHECK(ferry_test(request, &flag) == MPI_SUCCESS);
    CHECK(flag == 1);
    CHECK(ferry_wait(request) == MPI_SUCCESS);
    flag = 0;
    CHECK(ferry_testall(1, request, &flag) == MPI_SUCCESS);
    CHECK(flag == 1);
    CHECK(ferry_waitall(1, request) == MPI_SUCCESS);
  }
  CHECK(flight.request != FERRY_REQUEST_NULL);
  int flag = 0;
  CHECK(ferry_testall(0, nullptr, &flag) == MPI_SUCCESS);
  CHECK(flag == 1);
  CHECK(ferry_waitall(0, nullptr) == MPI_SUCCESS);
  CHECK(ferry_startall(0, nullptr) == MPI_SUCCESS);
  CHECK(ferry_request_free(&flight.request) == MPI_SUCCESS);
  CHECK(flight.request == FERRY_REQUEST_NULL);
}

TEST_CASE("handles: types may be freed while operations are pending") {
  const Arena send(8000 * static_cast<std::size_t>(world().size));
  const Arena recv(8000 * static_cast<std::size_t>(world().size));
  for (const Operation op : kOperations) {
    for (const Form form : {Form::nonblocking, Form::persistent}) {
      Shape shape{op, 8000};
      shape.width = 8;
      shape.send_as = Spelling::pairs;
      shape.recv_as = Spelling::whole;
      Exchange exchange(shape, zoo()[0], Memory::interior, send, recv);
      ferry_request request = FERRY_REQUEST_NULL;
      exchange.prepare(1);
      CHECK(exchange.call(form, &request) == MPI_SUCCESS);
      exchange.free_types();
      if (form == Form::persistent) {
        exchange.prepare(1);
        CHECK(ferry_start(&request) == MPI_SUCCESS);
      }
      CHECK(ferry_wait(&request) == MPI_SUCCESS);
      CHECK(exchange.verify(1) == "");
      if (form == Form::persistent) CHECK(ferry_request_free(&request) == MPI_SUCCESS);
    }
  }
}

TEST_CASE("handles: start is local: it returns although no other rank has started") {
  Flight flight(Operation::alltoall, 20000, zoo()[0], Memory::ferry);
  CHECK(flight.exchange.call(Form::persistent, &flight.request) == MPI_SUCCESS);
  // The last rank starts only after it heard from rank 0 that rank 0 has left start.
  const int last = world().size - 1;
  int token = 0;
  for (std::uint64_t i = 0; i < 3; ++i) {
    flight.exchange.prepare(i);
    if (last > 0 && world().rank == last) {
      MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    CHECK(ferry_start(&flight.request) == MPI_SUCCESS);
    if (last > 0 && world().rank == 0) MPI_Send(&token, 1, MPI_INT, last, 0, MPI_COMM_WORLD);
    CHECK(ferry_wait(&flight.request) == MPI_SUCCESS);
    CHECK(flight.exchange.verify(i) == "");
  }
  CHECK(ferry_request_free(&flight.request) == MPI_SUCCESS);
}

TEST_CASE("handles: one description (ferry_collective) runs every form of every operation") {
  const Comm& comm = zoo()[3];
  constexpr std::size_t kBytes = 120;
  for (const Operation op : kOperations) {
    for (const ferry_form form : {FERRY_BLOCKING, FERRY_NONBLOCKING, FERRY_PERSISTENT}) {
      Flight flight(op, kBytes, comm, Memory::heap, comm.size() - 1);
      ferry_call call{};
      call.size = sizeof call;
      call.operation = op == Operation::alltoall    ? FERRY_ALLTOALL
                       : op == Operation::allgather ? FERRY_ALLGATHER
                                                    : FERRY_BCAST;
      call.form = form;
      call.root = comm.size() - 1;
      call.sendbuf = flight.exchange.send().data();
      call.sendcount = kBytes;
      call.sendtype = MPI_BYTE;
      call.recvbuf = flight.exchange.recv().data();
      call.recvcount = kBytes / 4;
      call.recvtype = MPI_INT;
      call.comm = comm.get();
      if (op != Operation::bcast) call.sendtype = MPI_INT, call.sendcount = kBytes / 4;
      ferry_request request = FERRY_REQUEST_NULL;
      flight.exchange.prepare(3);
      CHECK(ferry_collective(&call, form == FERRY_BLOCKING ? nullptr : &request) == MPI_SUCCESS);
      if (form == FERRY_PERSISTENT) CHECK(ferry_start(&request) == MPI_SUCCESS);
      CHECK(ferry_wait(&request) == MPI_SUCCESS);
      CHECK(flight.exchange.verify(3) == "");
      if (form == FERRY_PERSISTENT) CHECK(ferry_request_free(&request) == MPI_SUCCESS);
    }
  }
}

TEST_CASE("handles: explain gives one line '<path>: <why>', print gives the steps") {
  Flight flight(Operation::alltoall, 64, zoo()[0], Memory::ferry);
  CHECK(flight.exchange.call(Form::persistent, &flight.request) == MPI_SUCCESS);
  char text[512] = "";
  CHECK(ferry_explain(flight.request, text, sizeof text) == MPI_SUCCESS);
  const std::string line = text;
  const std::string path = line.substr(0, line.find(": "));
  CHECK_MESSAGE(
      (path == "slots" || path == "engine" || path == "mpi" || path == "local" || path == "nodes"),
      line);
  CHECK(line.size() > path.size() + 2);
  CHECK(line.find('\n') == std::string::npos);
  std::memset(text, 'x', sizeof text);
  CHECK(ferry_explain(flight.request, text, 4) == MPI_SUCCESS);
  CHECK(std::string(text) == line.substr(0, 3));
  CHECK(text[4] == 'x');
  std::size_t needed = 0;
  CHECK(ferry_print(flight.request, nullptr, 0, &needed) == MPI_SUCCESS);
  std::vector<char> steps(needed + 1, 'x');
  CHECK(ferry_print(flight.request, steps.data(), needed, nullptr) == MPI_SUCCESS);
  CHECK(std::strlen(steps.data()) + 1 == needed);
  CHECK(steps[needed] == 'x');
  CHECK(ferry_request_free(&flight.request) == MPI_SUCCESS);
}

TEST_SUITE_END();
