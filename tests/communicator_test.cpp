// SPDX-License-Identifier: MIT
#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <ferry/ferry.h>

#include "support/cases.hpp"
#include "support/grid.hpp"
#include "support/lifetimes.hpp"

using namespace ferry::test;

namespace {

// One small alltoall on comm whose data says which communicator it belongs to; "" when right.
std::string small_alltoall(const Comm& comm, std::uint64_t iteration) {
  std::vector<int> sent(static_cast<std::size_t>(comm.size()));
  std::vector<int> received(sent.size(), -1);
  const auto value = [&](int from, int to) {
    return static_cast<int>(
        mix(iteration * 1000003ULL + static_cast<std::uint64_t>(from * 64 + to)));
  };
  for (int j = 0; j < comm.size(); ++j) sent[static_cast<std::size_t>(j)] = value(comm.rank(), j);
  const int rc = ferry_alltoall(sent.data(), 1, MPI_INT, received.data(), 1, MPI_INT, comm.get());
  if (rc != MPI_SUCCESS) return ferry_error_text();
  for (int j = 0; j < comm.size(); ++j) {
    if (received[static_cast<std::size_t>(j)] != value(j, comm.rank())) return "wrong data";
  }
  return "";
}

// A nonblocking alltoall per communicator, begun in the order given and waited in that order too.
struct Party {
  explicit Party(const Comm& comm, std::size_t bytes)
      : arena_send(bytes * static_cast<std::size_t>(comm.size())),
        arena_recv(bytes * static_cast<std::size_t>(comm.size())),
        exchange({Operation::alltoall, bytes}, comm, Memory::mixed, arena_send, arena_recv) {}
  Arena arena_send;
  Arena arena_recv;
  Exchange exchange;
  ferry_request request = FERRY_REQUEST_NULL;
};

void run_in_order(
    std::vector<std::unique_ptr<Party>>& parties, const std::vector<std::size_t>& begin,
    const std::vector<std::size_t>& end, std::uint64_t iteration) {
  for (const std::size_t i : begin) {
    parties[i]->exchange.prepare(iteration + i);
    CHECK(parties[i]->exchange.call(Form::nonblocking, &parties[i]->request) == MPI_SUCCESS);
  }
  for (const std::size_t i : end) CHECK(ferry_wait(&parties[i]->request) == MPI_SUCCESS);
  for (std::size_t i = 0; i < parties.size(); ++i) {
    CHECK(parties[i]->exchange.verify(iteration + i) == "");
  }
}

std::vector<std::vector<std::size_t>> permutations(std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<std::size_t>> all;
  do {
    all.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return all;
}

// Duplicates of world until MPI refuses; with one use of each by Ferry where use is set.
std::size_t communicators_until_refused(bool use) {
  std::vector<MPI_Comm> comms;
  constexpr std::size_t kMost = 5000;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kMost; ++i) {
    MPI_Comm comm = MPI_COMM_NULL;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &comm) != MPI_SUCCESS) break;
    comms.push_back(comm);
    value = world().rank == 0 ? mix(i) : 0;
    if (use) CHECK(ferry_bcast(&value, 1, MPI_UINT64_T, 0, comm) == MPI_SUCCESS);
    if (use) CHECK(value == mix(i));
  }
  const std::size_t count = comms.size();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  return count;
}

} // namespace

TEST_SUITE_BEGIN("communicators");

TEST_CASE("communicators: case 62: two idups outstanding") {
  MPI_Comm comms[2];
  MPI_Request requests[2];
  for (int i = 0; i < 2; ++i) MPI_Comm_idup(MPI_COMM_WORLD, &comms[i], &requests[i]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (std::uint64_t i = 0; i < 3; ++i) {
    for (MPI_Comm comm : comms) {
      const Comm view = duplicate(comm);
      CHECK(small_alltoall(view, i) == "");
    }
  }
  for (MPI_Comm comm : comms) {
    Comm owner(comm);
    CHECK(small_alltoall(owner, 9) == "");
  }
}

TEST_CASE("communicators: case 108: one rank comes late to the first collective") {
  constexpr unsigned kLateMilliseconds = 1500;
  for (int late = 0; late < world().size && late < 2; ++late) {
    const Comm comm = duplicate();
    if (world().rank == late) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kLateMilliseconds));
    }
    CHECK(small_alltoall(comm, static_cast<std::uint64_t>(late)) == "");
  }
}

TEST_CASE("communicators: case 63: three communicators, each rank in its own order") {
  std::vector<std::unique_ptr<Party>> parties;
  for (const std::size_t bytes : {8, 2000, 100000}) {
    parties.push_back(
        std::make_unique<Party>(zoo()[parties.size() == 2 ? 3 : parties.size()], bytes));
  }
  const auto orders = permutations(3);
  const auto shift = static_cast<std::size_t>(world().rank);
  std::uint64_t iteration = 0;
  const std::size_t stride = small_grid() ? 7 : 1;
  for (std::size_t k = 0; k < orders.size() * orders.size(); k += stride) {
    const std::size_t own = (k + (shift == 0 ? 0 : k / orders.size() + shift)) % orders.size();
    note("order " + std::to_string(k));
    run_in_order(parties, orders[own], orders[own], iteration += 10);
  }
}

TEST_CASE("communicators: case 63: communicators that overlap in a ring") {
  const int size = world().size;
  const int rank = world().rank;
  if (size < 3) return;
  // Pair i is {i, i+1}; each rank first begins the pair that it leads, or first the other one.
  std::vector<Comm> pairs;
  for (int i = 0; i < size; ++i) {
    const bool inside = rank == i || rank == (i + 1) % size;
    pairs.push_back(split(inside ? 0 : MPI_UNDEFINED, rank));
  }
  std::vector<std::unique_ptr<Party>> parties;
  for (const int i : {rank, (rank + size - 1) % size}) {
    parties.push_back(std::make_unique<Party>(pairs[static_cast<std::size_t>(i)], 3000));
  }
  // Data of a pair is that of its number, which both ranks know.
  const std::vector<std::size_t> forward = {0, 1};
  const std::vector<std::size_t> backward = {1, 0};
  for (std::uint64_t round = 0; round < 8; ++round) {
    const auto& order = (round >> (rank % 3)) % 2 == 0 ? forward : backward;
    for (const std::size_t i : order) {
      parties[i]->exchange.prepare(round);
      CHECK(parties[i]->exchange.call(Form::nonblocking, &parties[i]->request) == MPI_SUCCESS);
    }
    for (const std::size_t i : order) CHECK(ferry_wait(&parties[i]->request) == MPI_SUCCESS);
    for (const auto& party : parties) CHECK(party->exchange.verify(round) == "");
  }
}

TEST_CASE("communicators: case 66: each thread has its own communicator") {
  constexpr int kThreads = 4;
  const int rounds = world().size <= 2 && !small_grid() ? 2000 : 50;
  std::vector<Comm> comms;
  for (int i = 0; i < kThreads; ++i) comms.push_back(duplicate());
  std::vector<std::string> problems(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < rounds && problems[t].empty(); ++i) {
        problems[t] = small_alltoall(comms[t], t * 100000 + static_cast<std::uint64_t>(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) CHECK(problem == "");
}

TEST_CASE("communicators: case 47: free before, between and after starts, in every legal order") {
  const auto orders = lifetimes();
  CHECK(orders.size() > 100);
  const std::size_t stride = world().size <= 2 && !small_grid() ? 1 : world().size <= 3 ? 9 : 40;
  for (std::size_t i = 0; i < orders.size(); i += stride) {
    const std::string problem = run_lifetime(orders[i]);
    CHECK_MESSAGE(problem == "", orders[i], ": ", problem);
  }
}

TEST_CASE("communicators: a communicator is freed while a nonblocking operation is under way") {
  for (std::uint64_t i = 0; i < 5; ++i) {
    Comm comm = duplicate();
    Party party(comm, i % 2 == 0 ? 100 : 50000);
    party.exchange.prepare(i);
    CHECK(party.exchange.call(Form::nonblocking, &party.request) == MPI_SUCCESS);
    note("free " + std::to_string(i));
    comm.free();
    note("wait " + std::to_string(i));
    CHECK(ferry_wait(&party.request) == MPI_SUCCESS);
    CHECK(party.exchange.verify(i) == "");
  }
}

TEST_CASE("communicators: case 59: Ferry takes no context ids") {
  if (world().size > 2 || small_grid()) return;
  const std::size_t without = communicators_until_refused(false);
  const std::size_t with = communicators_until_refused(true);
  CHECK(without > 500);
  CHECK(with + 1 >= without);
  CHECK(with <= without + 1);
}

TEST_CASE("communicators: cases 58, 60: many live at once, again and again") {
  const std::size_t live = world().size <= 2 && !small_grid() ? 200 : 8;
  for (std::uint64_t round = 0; round < 3; ++round) {
    std::vector<Comm> comms;
    for (std::size_t i = 0; i < live; ++i) comms.push_back(duplicate());
    for (std::size_t i = 0; i < live; ++i) CHECK(small_alltoall(comms[i], round * 10000 + i) == "");
    for (std::size_t i = live; i-- > 0;) CHECK(small_alltoall(comms[i], round * 20000 + i) == "");
  }
}

TEST_SUITE_END();
