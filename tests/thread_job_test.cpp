// SPDX-License-Identifier: MIT
// Whole jobs in one process: every call form over every kind of memory, and random programs.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <thread>

#include "lib/exec/lane.hpp"
#include "support/thread_job.hpp"

using namespace ferry::test;
using ferry::core::Form;
using ferry::core::Operation;
using ferry::core::Status;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kSlowness = 8;
#else
constexpr int kSlowness = 1;
#endif

constexpr Operation kOperations[] = {
    Operation::alltoall, Operation::allgather, Operation::broadcast, Operation::gather,
    Operation::scatter};

// Where the memory of a rank's two buffers lies.
enum class Placing { mapped, inside, foreign, mixed };
constexpr Placing kPlacings[] = {
    Placing::mapped, Placing::inside, Placing::foreign, Placing::mixed};

Memory place(Placing placing, int rank, bool send) {
  switch (placing) {
    case Placing::mapped:
      return Memory::mapped;
    case Placing::inside:
      return Memory::inside;
    case Placing::foreign:
      return Memory::foreign;
    case Placing::mixed:
      break;
  }
  return ((send ? rank : rank / 2) % 2 == 0) ? Memory::foreign : Memory::mapped;
}

// Around every switch of the configured limits, as long as a rank's buffer stays small.
std::vector<std::size_t> sizes_for(int ranks) {
  const auto limits = ferry::core::plan_limits(ferry::core::config(), ranks, false);
  std::vector<std::size_t> sizes{0, 1, 7, 8, 63, 64, 65, 4097, 8191, 8192, 8193};
  for (const std::uint64_t at :
       {limits.direct_bytes, limits.slot_bytes, limits.stage_bytes, 2 * limits.stage_bytes,
        3 * limits.stage_bytes}) {
    for (const std::size_t size : {at - 1, at, at + 1}) {
      if (at > 0 && size * static_cast<std::size_t>(ranks) < 1'700'000) sizes.push_back(size);
    }
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

bool has_root(Operation operation) {
  return operation != Operation::alltoall && operation != Operation::allgather;
}

std::vector<Call> calls_for(int ranks) {
  std::vector<Call> calls;
  for (const std::size_t bytes : sizes_for(ranks)) {
    for (const Operation operation : kOperations) {
      const bool in_place = operation != Operation::broadcast;
      const int root = has_root(operation) ? ranks - 1 : 0;
      calls.push_back({operation, false, 0, bytes});
      calls.push_back({operation, in_place, root, bytes});
      calls.push_back({operation, in_place, root, bytes, in_place, true});
      calls.push_back({operation, false, 0, bytes, in_place, false});
    }
  }
  return calls;
}

struct Rank {
  Comm comm;
  int rank;
  int ranks;
  Faults& faults;

  void judge(const Status& status, const Operands& operands, std::uint64_t iteration) const {
    faults.expect(status.ok(), status.cause);
    if (status.ok()) {
      const std::string fault = operands.check(iteration);
      faults.expect(fault.empty(), fault);
    }
  }

  void all_forms(const Call& call, Placing placing) const {
    Operands operands(call, rank, ranks, place(placing, rank, true), place(placing, rank, false));
    operands.prepare(1);
    judge(run_blocking(comm, operands.desc(Form::blocking)), operands, 1);
    operands.prepare(2);
    {
      InFlight flight(comm, operands.desc(Form::nonblocking));
      for (int i = 0; i < 100 && !flight.test(); ++i) std::this_thread::yield();
      judge(flight.wait(), operands, 2);
    }
    const auto plan = comm->make_plan(operands.desc(Form::persistent));
    for (std::uint64_t iteration = 3; iteration < 6; ++iteration) {
      operands.prepare(iteration);
      InFlight flight(comm, *plan);
      judge(flight.wait(), operands, iteration);
    }
  }
};

void run_grid(int ranks) {
  Faults faults;
  const auto meeting = std::make_shared<Meeting>(ranks);
  const auto calls = calls_for(ranks);
  run_ranks(ranks, faults, [&](int rank) {
    const Rank me{make_comm(meeting, rank, "the grid's communicator"), rank, ranks, faults};
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (std::size_t p = 0; p < std::size(kPlacings); ++p) {
        if ((i + p) % kSlowness == 0) me.all_forms(calls[i], kPlacings[p]);
      }
    }
  });
  CHECK(faults.first() == "");
}

} // namespace

TEST_CASE("grid: every operation, form, size and memory on 1 rank") {
  run_grid(1);
}
TEST_CASE("grid: every operation, form, size and memory on 2 ranks") {
  run_grid(2);
}
TEST_CASE("grid: every operation, form, size and memory on 3 ranks") {
  run_grid(3);
}
TEST_CASE("grid: every operation, form, size and memory on 4 ranks") {
  run_grid(4);
}
TEST_CASE("grid: every operation, form, size and memory on 5 ranks") {
  run_grid(5);
}
TEST_CASE("grid: every operation, form, size and memory on 8 ranks") {
  run_grid(8);
}

namespace {

// A call that a random program makes again and again, in one form, on one communicator.
struct Lot {
  Call call;
  Form form;
  std::size_t comm;
};

// Ranks issue the lots of a round in an order of their own, complete some, and go on.
struct Round {
  std::vector<std::size_t> lots;
  bool new_plans = false;
};

struct Script {
  std::uint64_t seed;
  int ranks;
  std::size_t comms;
  std::vector<Lot> lots;
  std::vector<Round> rounds;
};

std::size_t random_bytes(std::mt19937_64& random) {
  const std::size_t edges[] = {0,    1,    64,   4063, 4064,  4065, 6143,
                               6144, 6145, 8191, 8192, 12289, 65536};
  switch (random() % 8) {
    case 0:
    case 1:
    case 2:
      return random() % 300;
    case 3:
      return random() % 40000;
    default:
      return edges[random() % std::size(edges)];
  }
}

Script write_script(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Script script{seed, 2 + static_cast<int>(random() % 4), 1 + random() % 3, {}, {}};
  for (std::size_t i = 4 + random() % 5; i > 0; --i) {
    const Operation operation = kOperations[random() % std::size(kOperations)];
    const bool broadcast = operation == Operation::broadcast;
    const auto root = has_root(operation) ? random() % static_cast<std::uint64_t>(script.ranks) : 0;
    const bool in_place = !broadcast && random() % 3 == 0;
    const bool uneven = !broadcast && random() % 2 == 0;
    const bool gaps = random() % 3 == 0;
    const auto form = static_cast<Form>(random() % 3);
    script.lots.push_back(
        {{operation, in_place, static_cast<int>(root), random_bytes(random), uneven, gaps},
         form,
         random() % script.comms});
  }
  for (int i = 0; i < 12; ++i) {
    Round round;
    for (std::size_t lot = 0; lot < script.lots.size(); ++lot) {
      if (random() % 2 == 0) round.lots.push_back(lot);
    }
    std::shuffle(round.lots.begin(), round.lots.end(), random);
    round.new_plans = random() % 6 == 0;
    script.rounds.push_back(std::move(round));
  }
  return script;
}

// One rank's way through a script. Choices that MPI leaves to a rank are drawn by that rank.
class Actor {
 public:
  Actor(
      const Script& script, const std::vector<std::shared_ptr<Meeting>>& meetings, int rank,
      Faults& faults)
      : script_(script),
        rank_(rank),
        faults_(faults),
        random_(script.seed * 1000 + static_cast<std::uint64_t>(rank)),
        seats_(script.lots.size()) {
    for (const auto& meeting : meetings) comms_.push_back(make_comm(meeting, rank, "a random one"));
  }

  void play() {
    for (const Round& round : script_.rounds) play(round);
    complete_some(1);
  }

 private:
  struct Seat {
    std::unique_ptr<Operands> operands;
    std::unique_ptr<ferry::core::PersistentPlan> plan;
    std::optional<InFlight> flight;
    std::uint64_t iteration = 0;
  };

  void play(const Round& round) {
    for (const std::size_t lot : round.lots) make_ready(lot, round.new_plans);
    // Blocking calls by themselves, in the order that all share.
    for (const std::size_t lot : round.lots) {
      if (script_.lots[lot].form == Form::blocking) run_at_once(lot);
    }
    for (const std::size_t lot : own_order(round.lots)) {
      issue(lot);
      dawdle(random_);
    }
    complete_some(2);
  }

  // Earlier starts complete first; then new buffers now and then, and a plan where one is needed.
  void make_ready(std::size_t lot, bool new_plans) {
    Seat& seat = seats_[lot];
    const Lot& what = script_.lots[lot];
    finish(lot);
    if (what.form == Form::persistent && seat.plan != nullptr && !new_plans) return;
    seat.plan.reset();
    if (seat.operands == nullptr || random_() % 4 == 0) {
      seat.operands = std::make_unique<Operands>(
          what.call, rank_, script_.ranks, static_cast<Memory>(random_() % 3),
          static_cast<Memory>(random_() % 3));
    }
    if (what.form == Form::persistent) {
      seat.plan = comms_[what.comm]->make_plan(seat.operands->desc(Form::persistent));
    }
  }

  // Non-blocking calls of one communicator in the order that all share, everything else at will.
  std::vector<std::size_t> own_order(const std::vector<std::size_t>& lots) {
    std::vector<std::size_t> queues[4];
    std::vector<std::size_t> turns;
    for (const std::size_t lot : lots) {
      if (script_.lots[lot].form == Form::blocking) continue;
      const bool free = script_.lots[lot].form == Form::persistent;
      const std::size_t queue = free ? 3 : script_.lots[lot].comm;
      queues[queue].push_back(lot);
      turns.push_back(queue);
    }
    std::shuffle(turns.begin(), turns.end(), random_);
    std::shuffle(queues[3].begin(), queues[3].end(), random_);
    std::size_t next[4] = {};
    std::vector<std::size_t> order;
    for (const std::size_t queue : turns) order.push_back(queues[queue][next[queue]++]);
    return order;
  }

  void run_at_once(std::size_t lot) {
    Seat& seat = seats_[lot];
    seat.operands->prepare(++seat.iteration);
    const auto desc = seat.operands->desc(Form::blocking);
    judge(lot, run_blocking(comms_[script_.lots[lot].comm], desc));
  }

  void issue(std::size_t lot) {
    Seat& seat = seats_[lot];
    const Comm& comm = comms_[script_.lots[lot].comm];
    seat.operands->prepare(++seat.iteration);
    if (seat.plan != nullptr) {
      seat.flight.emplace(comm, *seat.plan);
    } else {
      seat.flight.emplace(comm, seat.operands->desc(Form::nonblocking));
    }
  }

  void finish(std::size_t lot) {
    Seat& seat = seats_[lot];
    if (!seat.flight) return;
    for (auto looks = random_() % 6; looks > 0 && !seat.flight->test(); --looks) dawdle(random_);
    const Status status = seat.flight->wait();
    seat.flight.reset();
    judge(lot, status);
  }

  // One of `share` on average, in any order.
  void complete_some(std::uint64_t share) {
    std::vector<std::size_t> lots(seats_.size());
    std::iota(lots.begin(), lots.end(), std::size_t{0});
    std::shuffle(lots.begin(), lots.end(), random_);
    for (const std::size_t lot : lots) {
      if (random_() % share == 0) finish(lot);
    }
  }

  void judge(std::size_t lot, const Status& status) {
    const Seat& seat = seats_[lot];
    const std::string fault = status.ok() ? seat.operands->check(seat.iteration) : status.cause;
    faults_.expect(
        fault.empty(), "TEST_SEED=" + std::to_string(script_.seed) + ": " + fault + " (" +
                           describe(script_.lots[lot].call) + ")");
  }

  const Script& script_;
  const int rank_;
  Faults& faults_;
  std::mt19937_64 random_;
  std::vector<Comm> comms_; // outlive the plans in the seats
  std::vector<Seat> seats_;
};

std::string play_script(std::uint64_t seed) {
  const Script script = write_script(seed);
  Faults faults;
  std::vector<std::shared_ptr<Meeting>> meetings;
  for (std::size_t i = 0; i < script.comms; ++i) {
    meetings.push_back(std::make_shared<Meeting>(script.ranks));
  }
  run_ranks(script.ranks, faults, [&](int rank) { Actor(script, meetings, rank, faults).play(); });
  return faults.first();
}

// A loaded machine may end with fewer; how many is printed.
constexpr double kScriptSeconds = 25;

std::uint64_t scripts_to_play() {
  const char* const text = std::getenv("TEST_SCRIPTS");
  const std::uint64_t scripts = text != nullptr ? std::strtoull(text, nullptr, 10) : 400;
  return std::max<std::uint64_t>(scripts / kSlowness, 1);
}

} // namespace

TEST_CASE("random programs: every rank gets what the oracle says, in whatever order it works") {
  if (const char* seed = std::getenv("TEST_SEED")) {
    CHECK(play_script(std::strtoull(seed, nullptr, 10)) == "");
    return;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kScriptSeconds);
  const std::uint64_t scripts = scripts_to_play();
  std::uint64_t seed = 1;
  for (; seed <= scripts && std::chrono::steady_clock::now() < end; ++seed) {
    const std::string fault = play_script(seed);
    CHECK(fault == "");
    if (!fault.empty()) break;
  }
  std::printf("%llu random programs\n", static_cast<unsigned long long>(seed - 1));
}
