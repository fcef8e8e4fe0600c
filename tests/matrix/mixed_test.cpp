// SPDX-License-Identifier: MIT
// Collectives on several communicators and messages of the program under way at the same time,
// begun in another order on each rank, and completed in another way (case 63).
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../support/world.hpp"
#include "completion.hpp"
#include "run.hpp"
#include "task.hpp"

namespace ferry::test {
namespace {

constexpr int kRounds = 3;
constexpr int kTagFrom = 40;

using Tasks = std::vector<std::unique_ptr<Task>>;

// Collectives that do not block, and both halves of a few messages.
Tasks random_tasks(
    Dice& dice, std::uint64_t seed, const std::vector<Comm>& comms, std::uint64_t& collectives) {
  Tasks tasks;
  const std::int64_t count = dice.between(1, 5);
  for (std::int64_t i = 0; i < count; ++i) {
    Configuration c = configuration(seed, dice.word() % 100000);
    // A persistent collective of MPICH 4.0.2 is broken if a persistent message was freed before.
    if (c.form.way == Way::blocking || done_below(c.form.coll)) c.form.way = Way::nonblocking;
    c.comm = dice.word() % comms.size();
    const Comm& comm = comms[c.comm];
    if (!wanted(c.form.coll) || left_out(c, comm)) continue;
    ++collectives;
    if (comm.member()) tasks.push_back(make_collective(c, comm, static_cast<int>(c.comm)));
  }
  const std::int64_t messages = dice.between(0, 2);
  for (std::int64_t i = 0; i < messages; ++i) {
    Message message{
        static_cast<int>(dice.between(1, 7)), kTagFrom + static_cast<int>(i),
        static_cast<std::size_t>(dice.between(0, 20000)), false, dice.one_in(2)};
    for (const bool sends : {true, false}) {
      message.sends = sends;
      tasks.push_back(make_message(message));
    }
  }
  return tasks;
}

// Any order that keeps that of the collectives of each communicator.
std::vector<std::size_t> random_order(Dice& dice, const Tasks& tasks) {
  std::vector<std::size_t> order;
  std::vector<bool> begun(tasks.size());
  while (order.size() < tasks.size()) {
    std::size_t next = dice.word() % tasks.size();
    if (begun[next]) continue;
    for (std::size_t earlier = 0; earlier < next; ++earlier) {
      const bool same = tasks[earlier]->communicator() == tasks[next]->communicator();
      if (same && tasks[next]->communicator() >= 0 && !begun[earlier]) {
        next = earlier;
        break;
      }
    }
    begun[next] = true;
    order.push_back(next);
  }
  return order;
}

// MPI_Startall begins in any order, so no two collectives of one communicator go into one.
class Starter {
 public:
  Starter(Dice& dice, const Tasks& tasks, std::vector<MPI_Request>& requests)
      : dice_(dice), tasks_(tasks), requests_(requests) {}
  ~Starter() { flush(); }
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  void start(std::size_t index) {
    if (!tasks_[index]->persistent()) {
      flush();
      CHECK(tasks_[index]->make(&requests_[index]) == MPI_SUCCESS);
      return;
    }
    const int communicator = tasks_[index]->communicator();
    for (const std::size_t waiting : waiting_) {
      if (communicator < 0 || tasks_[waiting]->communicator() != communicator) continue;
      flush();
      break;
    }
    waiting_.push_back(index);
    if (dice_.one_in(2)) flush();
  }

 private:
  void flush() {
    std::vector<MPI_Request> together;
    for (const std::size_t index : waiting_) together.push_back(requests_[index]);
    if (together.size() == 1) CHECK(MPI_Start(together.data()) == MPI_SUCCESS);
    if (together.size() > 1) {
      CHECK(MPI_Startall(static_cast<int>(together.size()), together.data()) == MPI_SUCCESS);
    }
    for (std::size_t i = 0; i < waiting_.size(); ++i) requests_[waiting_[i]] = together[i];
    waiting_.clear();
  }

  Dice& dice_;
  const Tasks& tasks_;
  std::vector<MPI_Request>& requests_;
  std::vector<std::size_t> waiting_;
};

void run_round(
    Dice& dice, const Tasks& tasks, std::vector<MPI_Request>& requests, std::uint64_t iteration) {
  for (const auto& task : tasks) task->prepare(iteration);
  {
    Starter starter(dice, tasks, requests);
    for (const std::size_t index : random_order(dice, tasks)) starter.start(index);
  }
  const auto how = static_cast<Completion>(dice.between(0, kCompletions - 1));
  INFO(std::string(name_of(how)));
  note(note_text() + std::string(", ") + name_of(how));
  // The last one is no request.
  const Completed done = complete(how, dice, requests);
  CHECK_MESSAGE(done.problem == "", done.problem);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    CHECK(done.times[i] == 1);
    CHECK((requests[i] == MPI_REQUEST_NULL) == !tasks[i]->persistent());
    const std::string problem = tasks[i]->problem(done.statuses[i]);
    CHECK_MESSAGE(problem == "", "task ", i, " (", tasks[i]->text(), "): ", problem);
  }
}

void run_tasks(Dice& own_dice, const Tasks& tasks, std::uint64_t iteration) {
  std::vector<MPI_Request> requests(tasks.size() + 1, MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!tasks[i]->persistent()) continue;
    tasks[i]->prepare(iteration + 50);
    REQUIRE(tasks[i]->make(&requests[i]) == MPI_SUCCESS);
  }
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    INFO("round ", round + 1);
    run_round(own_dice, tasks, requests, iteration + round);
  }
  for (MPI_Request& request : requests) {
    if (request != MPI_REQUEST_NULL) CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
  }
}

std::uint64_t run_mixture(
    std::uint64_t seed, std::uint64_t index, const std::vector<Comm>& comms, const char* kind) {
  const std::string text =
      std::string(kind) + ", seed " + std::to_string(seed) + ", mixture " + std::to_string(index);
  note(text);
  INFO(text);
  const std::uint64_t own = mix(seed + 7) + index;
  Dice dice(own);
  std::uint64_t collectives = 0;
  const Tasks tasks = random_tasks(dice, own, comms, collectives);
  if (environment("TEST_TRACE", "") == "1") {
    for (const auto& task : tasks) {
      std::fprintf(stderr, "%s: %s\n", text.c_str(), task->text().c_str());
    }
  }
  Dice own_dice(own ^ static_cast<std::uint64_t>(world().rank + 1));
  run_tasks(own_dice, tasks, own);
  return collectives;
}

} // namespace

TEST_CASE("matrix: mixtures of collectives and messages") {
  const std::uint64_t seed = first_seed(1);
  const std::uint64_t first = number("TEST_FIRST", 0);
  const std::uint64_t count = number("TEST_MIXTURES", 60);
  std::uint64_t collectives = 0;
  for (std::uint64_t index = first; index < first + count; ++index) {
    collectives += run_mixture(seed, index, zoo(), "zoo");
  }
  if (world().rank != 0) return;
  std::printf(
      "mixtures of %d ranks, seed %llu: %llu with %llu collectives\n", world().size,
      static_cast<unsigned long long>(seed), static_cast<unsigned long long>(count),
      static_cast<unsigned long long>(collectives));
}

// The first calls there are under way at the same time, and the ranks make them in other orders.
TEST_CASE("matrix: mixtures on new communicators") {
  const std::uint64_t seed = first_seed(1);
  const std::uint64_t first = number("TEST_FIRST", 0);
  const std::uint64_t count = number("TEST_MIXTURES", 60) / 5 + 1;
  for (std::uint64_t index = first; index < first + count; ++index) {
    std::vector<Comm> comms;
    for (int i = 0; i < 3; ++i) comms.push_back(duplicate());
    run_mixture(seed, index, comms, "new communicators");
  }
}

} // namespace ferry::test
