// SPDX-License-Identifier: MIT
// The ranks of a communicator become a team, all alike, whatever one of them cannot do; and nothing
// is left of it afterwards.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <thread>

#include "lib/exec/lane.hpp"
#include "lib/exec/set_up.hpp"
#include "support/thread_job.hpp"

using namespace ferry::test;
using namespace ferry::core;

namespace {

constexpr int kLooks = 200'000;

// One rank of a set-up, driven by hand.
class Candidate {
 public:
  Candidate(const std::shared_ptr<Meeting>& meeting, int rank, Tamper tamper = {})
      : bootstrap_(meeting, rank, std::move(tamper)),
        set_up_(bootstrap_, team_, lane_layout(config(), meeting->ranks())) {}
  ~Candidate() {
    if (block_ != nullptr) Heap::instance().release(block_);
  }

  // A bounded number of looks; the lane block is taken when it is over.
  [[nodiscard]] bool finish() {
    for (int i = 0; i < kLooks; ++i) {
      if (set_up_.progress() == Poll::ready) {
        block_ = set_up_.take_lane_block();
        return true;
      }
      std::this_thread::yield();
    }
    return false;
  }
  [[nodiscard]] SetUp& set_up() { return set_up_; }
  [[nodiscard]] const Topology& topology() const { return team_.topology; }
  [[nodiscard]] bool has_block() const { return block_ != nullptr; }

 private:
  Team team_;
  ThreadBootstrap bootstrap_;
  SetUp set_up_;
  std::byte* block_ = nullptr;
};

// Where the team of three ended on each rank, when `tamper` changes what rank `victim` (or, with
// -1, everyone) is told.
std::array<Topology, 3> end_of_three(int victim, const Tamper& tamper) {
  Faults faults;
  const auto meeting = std::make_shared<Meeting>(3);
  std::array<Topology, 3> ends;
  std::barrier together(3);
  run_ranks(3, faults, [&](int rank) {
    Candidate candidate(meeting, rank, victim == rank || victim == -1 ? tamper : Tamper{});
    faults.expect(candidate.finish(), "the set-up of rank " + std::to_string(rank) + " hangs");
    ends[static_cast<std::size_t>(rank)] = candidate.topology();
    faults.expect(
        candidate.has_block() == candidate.topology().shared, "a block without a team, or less");
    together.arrive_and_wait(); // the votes are read until here
  });
  CHECK(faults.first() == "");
  return ends;
}

void check_unshared(const std::array<Topology, 3>& ends, const std::string& reason) {
  for (const Topology& end : ends) {
    CHECK_FALSE(end.shared);
    CHECK_FALSE(end.attach);
    CHECK(end.why_not_shared.find(reason) != std::string::npos);
  }
}

} // namespace

TEST_CASE("set-up: every rank ends with the same team") {
  for (int round = 0; round < 50; ++round) {
    const auto ends = end_of_three(-1, {});
    for (int rank = 0; rank < 3; ++rank) {
      const Topology& end = ends[static_cast<std::size_t>(rank)];
      CHECK(end.rank == rank);
      CHECK(end.ranks == 3);
      CHECK(end.shared);
      CHECK(end.attach == ends[0].attach);
      CHECK(end.cores == ends[0].cores);
      CHECK(end.why_not_shared == "");
    }
  }
}

TEST_CASE("set-up: without the last rank it is pending, and never blocks") {
  Faults faults;
  const auto meeting = std::make_shared<Meeting>(3);
  std::barrier others(3);
  run_ranks(3, faults, [&](int rank) {
    if (rank == 2) others.arrive_and_wait();
    Candidate candidate(meeting, rank);
    for (int i = 0; rank != 2 && i < 1000; ++i) {
      faults.expect(candidate.set_up().progress() == Poll::pending, "ready without rank 2");
    }
    if (rank != 2) others.arrive_and_wait();
    faults.expect(candidate.finish(), "a set-up with all ranks hangs");
    faults.expect(
        candidate.topology().shared, "not shared: " + candidate.topology().why_not_shared);
    others.arrive_and_wait();
  });
  CHECK(faults.first() == "");
}

TEST_CASE("set-up: what one rank cannot map no rank uses, and all know why") {
  const auto ends = end_of_three(1, [](int rank, RankCard& card) {
    if (rank == 2) card.heap.stamp[0] ^= 1;
  });
  check_unshared(ends, "rank 1 cannot map rank 2");
}

TEST_CASE("set-up: a rank without shared memory, and ranks on two nodes") {
  check_unshared(
      end_of_three(
          -1,
          [](int rank, RankCard& card) {
            if (rank != 2) return;
            card.usable = 0;
            std::snprintf(card.reason, sizeof card.reason, "no room");
          }),
      "rank 2: no room");
  check_unshared(
      end_of_three(
          -1,
          [](int rank, RankCard& card) {
            if (rank == 0) card.boot_id += 1;
          }),
      "2 nodes");
}

TEST_CASE("set-up: one rank that cannot attach switches it off for all, and only that") {
  constexpr int kNobody = 0x3fffffff;
  const auto ends = end_of_three(1, [](int rank, RankCard& card) {
    if (rank == 0) card.heap.pid = kNobody;
  });
  for (const Topology& end : ends) {
    CHECK(end.shared);
    CHECK_FALSE(end.attach);
  }
}

TEST_CASE("set-up: another configuration on one rank is an error on all, with its name") {
  Faults faults;
  const auto meeting = std::make_shared<Meeting>(3);
  std::atomic<int> told{0};
  run_ranks(3, faults, [&](int rank) {
    Candidate candidate(meeting, rank, [](int other, RankCard& card) {
      if (other == 2) card.config.stage_bytes += 4096;
    });
    try {
      faults.expect(candidate.finish(), "the set-up hangs");
    } catch (const Failure& failure) {
      const Status& status = failure.status();
      if (status.kind == ErrorKind::configuration &&
          status.cause == "FERRY_STAGE_BYTES is not the same on rank 0 and on rank 2") {
        ++told;
      }
    }
  });
  CHECK(faults.first() == "");
  CHECK(told == 3);
}

TEST_CASE("set-up: a communicator whose set-up ended with an error says so at every later call") {
  Faults faults;
  const auto meeting = std::make_shared<Meeting>(2);
  std::atomic<int> told{0};
  run_ranks(2, faults, [&](int rank) {
    const auto tamper = [](int other, RankCard& card) {
      if (other == 1) card.config.stage_bytes += 4096;
    };
    const Comm comm = std::make_shared<Communicator>(
        std::make_unique<ThreadBootstrap>(meeting, rank, tamper), MPI_COMM_NULL, "a bad one");
    Operands operands(
        {Operation::alltoall, false, 0, 64}, rank, 2, Memory::foreign, Memory::foreign);
    for (int call = 0; call < 3; ++call) {
      try {
        static_cast<void>(comm->make_plan(operands.desc(Form::persistent)));
      } catch (const Failure& failure) {
        if (failure.status().kind == ErrorKind::configuration) ++told;
      }
    }
    const Status status = run_blocking(comm, operands.desc(Form::blocking));
    if (status.kind == ErrorKind::configuration) ++told;
  });
  CHECK(faults.first() == "");
  CHECK(told == 2 * 4);
}

namespace {

// A process that does nothing until it is ended, for a rank to be taken for.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ != 0) return;
    alarm(100);
    pause();
    _exit(0);
  }
  ~Sleeper() { end(); }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void stand_in(RankCard& card) const {
    card.pid = pid_;
    card.start_time = start_time_of(pid_);
  }

 private:
  pid_t pid_;
};

} // namespace

TEST_CASE("set-up: a wait for a rank that has ended is an error, and so is every call after it") {
  Faults faults;
  Sleeper sleeper;
  const auto meeting = std::make_shared<Meeting>(2);
  std::barrier together(2);
  run_ranks(2, faults, [&](int rank) {
    const Comm comm = make_comm(meeting, rank, "one with a dead rank", [&](int other, auto& card) {
      if (other == 1) sleeper.stand_in(card);
    });
    const Call call{Operation::alltoall, false, 0, 9000};
    Operands operands(call, rank, 2, Memory::mapped, Memory::mapped);
    operands.prepare(1);
    const Status fine = run_blocking(comm, operands.desc(Form::blocking));
    faults.expect(fine.ok() && operands.check(1).empty(), fine.cause + operands.check(1));
    together.arrive_and_wait();
    if (rank == 1) sleeper.end();
    for (int i = 0; rank == 0 && i < 2; ++i) {
      const Status status = run_blocking(comm, operands.desc(Form::blocking));
      faults.expect(status.kind == ErrorKind::peer_died, "no error for a dead rank");
      faults.expect(status.cause.find("rank 1 (process ") == 0, "another text: " + status.cause);
    }
    together.arrive_and_wait();
  });
  CHECK(faults.first() == "");
}

TEST_CASE("set-up: a late rank, while the waits of all others drive every communicator") {
  constexpr std::size_t kRounds = 60;
  Faults faults;
  std::vector<std::shared_ptr<Meeting>> meetings;
  for (std::size_t i = 0; i < kRounds; ++i) meetings.push_back(std::make_shared<Meeting>(3));
  run_ranks(3, faults, [&](int rank) {
    for (std::uint64_t i = 0; i < kRounds; ++i) {
      // From a spin to a sleep, this is where the others are when the last one comes.
      if (i % 3 == static_cast<std::uint64_t>(rank)) {
        std::this_thread::sleep_for(std::chrono::microseconds(i * 50));
      }
      const Comm comm = make_comm(meetings[i], rank, "one with a late rank");
      Operands operands(
          {Operation::alltoall, false, 0, 9000}, rank, 3, Memory::foreign, Memory::mapped);
      operands.prepare(i);
      InFlight flight(comm, operands.desc(Form::nonblocking));
      const Status status = flight.wait();
      faults.expect(status.ok() && operands.check(i).empty(), status.cause + operands.check(i));
    }
  });
  CHECK(faults.first() == "");
}

TEST_CASE("set-up: a communicator that is never used leaves its exchange what it reads") {
  Faults faults;
  const auto meeting = std::make_shared<Meeting>(2);
  run_ranks(2, faults, [&](int rank) { make_comm(meeting, rank, "an unused one"); });
  CHECK(faults.first() == "");
  CHECK(meeting->broken_promises() == 0);
}

namespace {

// Communicators of three ranks, each with calls and plans of all paths, made and dropped again.
void churn(int communicators) {
  Faults faults;
  std::vector<std::shared_ptr<Meeting>> meetings;
  for (int i = 0; i < communicators; ++i) meetings.push_back(std::make_shared<Meeting>(3));
  run_ranks(3, faults, [&](int rank) {
    Operands small({Operation::alltoall, false, 0, 64}, rank, 3, Memory::foreign, Memory::foreign);
    Operands large({Operation::alltoall, true, 0, 9000}, rank, 3, Memory::mapped, Memory::foreign);
    for (std::uint64_t i = 0; i < meetings.size(); ++i) {
      const Comm comm = make_comm(meetings[i], rank, "one of very many");
      for (Operands* const operands : {&small, &large}) {
        operands->prepare(i);
        const Status status = run_blocking(comm, operands->desc(Form::blocking));
        faults.expect(status.ok() && operands->check(i).empty(), status.cause + operands->check(i));
        const auto plan = comm->make_plan(operands->desc(Form::persistent));
        operands->prepare(i + 1);
        faults.expect(InFlight(comm, *plan).wait().ok(), "a plan of one of very many");
        faults.expect(operands->check(i + 1).empty(), operands->check(i + 1));
      }
    }
  });
  CHECK(faults.first() == "");
}

} // namespace

TEST_CASE("set-up: a thousand communicators and their plans leave no memory behind") {
  churn(100);
  const std::uint64_t heap = heap_bytes();
  const std::uint64_t live = live_bytes();
  churn(1000);
  CHECK(heap_bytes() == heap);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  CHECK(live_bytes() < live + (64 << 10));
#else
  static_cast<void>(live); // a sanitizer has its own allocator
#endif
}

TEST_CASE("set-up: plans that do not fit together are refused everywhere and leave no memory") {
  Faults faults;
  const auto meeting = std::make_shared<Meeting>(3);
  std::barrier together(3);
  run_ranks(3, faults, [&](int rank) {
    const Comm comm = make_comm(meeting, rank, "one with misfitting plans");
    const std::size_t bytes = rank == 2 ? 9001 : 9000;
    Operands operands(
        {Operation::allgather, false, 0, bytes}, rank, 3, Memory::mapped, Memory::mapped);
    for (int i = 0; i < 20; ++i) {
      ErrorKind told = ErrorKind::none;
      try {
        const auto plan = comm->make_plan(operands.desc(Form::persistent));
      } catch (const Failure& failure) {
        told = failure.status().kind;
      }
      faults.expect(told == ErrorKind::mismatch, "misfitting plans were taken");
    }
    together.arrive_and_wait();
    const std::uint64_t before = heap_bytes();
    together.arrive_and_wait();
    Operands good(
        {Operation::allgather, false, 0, 9000}, rank, 3, Memory::foreign, Memory::foreign);
    good.prepare(7);
    {
      const auto plan = comm->make_plan(good.desc(Form::persistent));
      faults.expect(InFlight(comm, *plan).wait().ok(), "a plan that fits");
    }
    faults.expect(good.check(7).empty(), good.check(7));
    together.arrive_and_wait();
    faults.expect(heap_bytes() == before, "a plan left pages behind");
    together.arrive_and_wait();
  });
  CHECK(faults.first() == "");
}
