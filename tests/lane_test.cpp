// SPDX-License-Identifier: MIT
// What several ranks must agree on while they work: order across communicators (case 63), calls
// that do not fit together (case 82), and counters far from zero.
#include <doctest/doctest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <thread>

#include "lib/exec/lane.hpp"
#include "support/thread_job.hpp"

using namespace ferry::test;
using namespace ferry::core;

namespace {

// A communicator as one rank sees it.
struct Spot {
  Comm comm;
  int rank;
  int ranks;
};

struct Trial {
  std::vector<std::size_t> issue; // order of the spots
  std::vector<std::size_t> finish;
  Call call;
  std::uint64_t iteration;
  bool tests; // completed by looks alone
};

// The same call on each communicator, issued and completed in the given orders.
void run_trial(const std::vector<Spot>& spots, const Trial& trial, Faults& faults) {
  std::vector<std::unique_ptr<Operands>> operands;
  std::vector<std::unique_ptr<InFlight>> flights(spots.size());
  for (const Spot& spot : spots) {
    operands.push_back(std::make_unique<Operands>(
        trial.call, spot.rank, spot.ranks, Memory::mapped, Memory::foreign));
    operands.back()->prepare(trial.iteration);
  }
  for (const std::size_t i : trial.issue) {
    flights[i] = std::make_unique<InFlight>(spots[i].comm, operands[i]->desc(Form::nonblocking));
  }
  for (const std::size_t i : trial.finish) {
    for (int look = 0; trial.tests && look < 100'000 && !flights[i]->test(); ++look) {
      std::this_thread::yield();
    }
    const Status status = flights[i]->wait();
    const std::string fault = status.ok() ? operands[i]->check(trial.iteration) : status.cause;
    faults.expect(fault.empty(), fault);
  }
}

std::vector<std::vector<std::size_t>> orders_of(std::size_t count) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < count; ++i) order.push_back(i);
  std::vector<std::vector<std::size_t>> all;
  do {
    all.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return all;
}

constexpr std::size_t kSizes[] = {100, 20'000};

// Every rank takes every order against every order of the others.
void run_all_orders(std::size_t comms, int ranks) {
  Faults faults;
  std::vector<std::shared_ptr<Meeting>> meetings;
  for (std::size_t i = 0; i < comms; ++i) meetings.push_back(std::make_shared<Meeting>(ranks));
  const auto orders = orders_of(comms);
  std::size_t combinations = 1;
  for (int rank = 0; rank < ranks; ++rank) combinations *= orders.size();
  run_ranks(ranks, faults, [&](int rank) {
    std::vector<Spot> spots;
    for (const auto& meeting : meetings) {
      spots.push_back({make_comm(meeting, rank, "one of several"), rank, ranks});
    }
    std::size_t share = 1;
    for (int r = 0; r < rank; ++r) share *= orders.size();
    for (std::size_t i = 0; i < combinations; ++i) {
      const auto& issue = orders[i / share % orders.size()];
      const auto& finish = orders[(i / share + i) % orders.size()];
      for (const std::size_t bytes : kSizes) {
        const Call call{Operation::alltoall, false, 0, bytes};
        run_trial(spots, {issue, finish, call, i, i % 3 == 0}, faults);
      }
    }
  });
  CHECK(faults.first() == "");
}

} // namespace

TEST_CASE("case 63: two communicators, in every order of each rank") {
  run_all_orders(2, 2);
  run_all_orders(2, 4);
}

TEST_CASE("case 63: three communicators, in every order of each rank") {
  run_all_orders(3, 2);
  run_all_orders(3, 3);
}

TEST_CASE("case 63: overlapping communicators {0,1}, {1,2}, {2,0} in every order") {
  Faults faults;
  std::vector<std::shared_ptr<Meeting>> meetings;
  for (int i = 0; i < 3; ++i) meetings.push_back(std::make_shared<Meeting>(2));
  run_ranks(3, faults, [&](int rank) {
    const auto own = static_cast<std::size_t>(rank);
    const std::size_t before = (own + 2) % 3;
    const std::vector<Spot> spots{
        {make_comm(meetings[own], 0, "with the next"), 0, 2},
        {make_comm(meetings[before], 1, "with the one before"), 1, 2}};
    const auto orders = orders_of(2);
    for (std::size_t i = 0; i < 64; ++i) {
      const auto& issue = orders[i >> own & 1];
      const auto& finish = orders[i >> (own + 3) & 1];
      for (const std::size_t bytes : kSizes) {
        const Call call{Operation::allgather, false, 0, bytes};
        run_trial(spots, {issue, finish, call, i, i % 3 == 0}, faults);
      }
    }
  });
  CHECK(faults.first() == "");
}

TEST_CASE("order: a call that waits for its turn while a peer is late is no mismatch") {
  Faults faults;
  const auto meeting = std::make_shared<Meeting>(2);
  run_ranks(2, faults, [&](int rank) {
    const Comm comm = make_comm(meeting, rank, "one with a late rank");
    const Call first{Operation::alltoall, false, 0, 100};
    const Call second{Operation::broadcast, false, 0, 5000};
    Operands a(first, rank, 2, Memory::foreign, Memory::foreign);
    Operands b(second, rank, 2, Memory::foreign, Memory::foreign);
    faults.expect(run_blocking(comm, a.desc(Form::blocking)).ok(), "the first call");
    a.prepare(1);
    b.prepare(1);
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(400));
    InFlight one(comm, a.desc(Form::nonblocking));
    InFlight two(comm, b.desc(Form::nonblocking));
    const Status later = two.wait();
    faults.expect(later.ok(), later.cause);
    const Status status = one.wait();
    faults.expect(status.ok(), status.cause);
    faults.expect(a.check(1) + b.check(1) == "", a.check(1) + b.check(1));
  });
  CHECK(faults.first() == "");
}

namespace {

struct Misfit {
  std::string what;
  std::vector<Call> calls; // of each rank
  std::string expected; // of each rank: m a mismatch, o fine
};

Call alltoall(std::size_t bytes) {
  return {Operation::alltoall, false, 0, bytes};
}
Call allgather(std::size_t bytes) {
  return {Operation::allgather, false, 0, bytes};
}
Call broadcast(std::size_t bytes, int root) {
  return {Operation::broadcast, false, root, bytes};
}

char letter_of(const Status& status) {
  return status.ok() ? 'o' : status.kind == ErrorKind::mismatch ? 'm' : '!';
}

// What each rank is told. Afterwards calls that fit, small and large, must work.
std::string outcome_of(const std::vector<Call>& calls, Faults& faults) {
  const int ranks = static_cast<int>(calls.size());
  const auto meeting = std::make_shared<Meeting>(ranks);
  std::string outcome(calls.size(), '?');
  run_ranks(ranks, faults, [&](int rank) {
    const Comm comm = make_comm(meeting, rank, "one with misfits");
    const auto own = static_cast<std::size_t>(rank);
    for (std::uint64_t round = 0; round < 3; ++round) {
      Operands operands(calls[own], rank, ranks, Memory::mapped, Memory::foreign);
      operands.prepare(round);
      const Status status = run_blocking(comm, operands.desc(Form::blocking));
      if (round == 0) outcome[own] = letter_of(status);
      faults.expect(letter_of(status) == outcome[own], "another outcome when repeated");
      for (const std::size_t bytes : {std::size_t{64}, std::size_t{20'000}}) {
        Operands good(alltoall(bytes), rank, ranks, Memory::mapped, Memory::foreign);
        good.prepare(round);
        const Status after = run_blocking(comm, good.desc(Form::blocking));
        const std::string fault = after.ok() ? good.check(round) : "afterwards: " + after.cause;
        faults.expect(fault.empty(), fault);
      }
      faults.expect(operands.intact(), "a canary of the call that did not fit");
    }
  });
  return outcome;
}

void run_misfits(const std::vector<Misfit>& misfits) {
  for (const Misfit& misfit : misfits) {
    CAPTURE(misfit.what);
    Faults faults;
    CHECK(outcome_of(misfit.calls, faults) == misfit.expected);
    CHECK(faults.first() == "");
  }
}

} // namespace

TEST_CASE("case 82: sizes that differ") {
  run_misfits({
      {"small alltoall", {alltoall(100), alltoall(100), alltoall(101)}, "mmm"},
      {"nothing and something", {alltoall(0), alltoall(0), alltoall(1)}, "mmm"},
      {"small allgather", {allgather(100), allgather(99), allgather(100)}, "mmm"},
      {"large alltoall", {alltoall(20'000), alltoall(20'000), alltoall(20'001)}, "mmm"},
      {"large allgather", {allgather(20'001), allgather(20'000), allgather(20'000)}, "mmm"},
      {"large broadcast", {broadcast(9000, 0), broadcast(9001, 0), broadcast(9000, 0)}, "mmm"},
  });
}

TEST_CASE("case 82: operations and roots that differ") {
  run_misfits({
      {"small, two ranks", {alltoall(100), allgather(100)}, "mm"},
      {"large, two ranks", {alltoall(9000), allgather(9000)}, "mm"},
      {"large, three ranks", {alltoall(9000), allgather(9000), broadcast(9000, 1)}, "mmm"},
      {"large roots", {broadcast(9000, 0), broadcast(9000, 1), broadcast(9000, 0)}, "mmm"},
      {"small in place on one", {alltoall(100), {Operation::alltoall, true, 0, 100}}, "mm"},
      {"large in place on one", {allgather(9000), {Operation::allgather, true, 0, 9000}}, "mm"},
      {"a small exchange, a large broadcast", {alltoall(100), broadcast(9000, 0)}, "mm"},
  });
}

TEST_CASE("case 82: small against large") {
  run_misfits({
      {"alltoall", {alltoall(100), alltoall(9000)}, "mm"},
      {"alltoall of three", {alltoall(9000), alltoall(100), alltoall(9000)}, "mmm"},
      {"allgather", {allgather(9000), allgather(0), allgather(9000)}, "mmm"},
  });
}

TEST_CASE("case 82: readers of a small broadcast leave a root with a large one") {
  run_misfits({
      {"the root alone has more",
       {broadcast(9000, 0), broadcast(100, 0), broadcast(100, 0)},
       "mmm"},
      {"one reader has less", {broadcast(9000, 0), broadcast(9000, 0), broadcast(100, 0)}, "mmm"},
      {"one reader exchanges", {broadcast(100, 1), alltoall(100)}, "mm"},
  });
}

TEST_CASE("case 82: ranks that only test are told as well") {
  Faults faults;
  const auto meeting = std::make_shared<Meeting>(2);
  run_ranks(2, faults, [&](int rank) {
    const Comm comm = make_comm(meeting, rank, "one whose ranks only test");
    const Call call = alltoall(rank == 0 ? 100 : 9000);
    Operands operands(call, rank, 2, Memory::mapped, Memory::foreign);
    operands.prepare(1);
    InFlight flight(comm, operands.desc(Form::nonblocking));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    bool told = false;
    for (; !told && std::chrono::steady_clock::now() < end; told = flight.test()) {
      std::this_thread::yield();
    }
    faults.expect(told, "rank " + std::to_string(rank) + " tests for ever");
    faults.expect(letter_of(flight.wait()) == 'm', "another error than a mismatch");
  });
  CHECK(faults.first() == "");
}

namespace {

constexpr int kBenchRanks = 3;
constexpr std::uint64_t kEdges[] = {std::uint64_t{1} << 32, std::uint64_t{1} << 63};

using Body = std::function<void(Bench& bench, std::barrier<>& together, Faults& faults)>;

void run_bench(const BlockLayout& layout, const Body& body) {
  Faults faults;
  const auto meeting = std::make_shared<Meeting>(kBenchRanks);
  std::barrier together(kBenchRanks);
  run_ranks(kBenchRanks, faults, [&](int rank) {
    Bench bench(meeting, rank, layout);
    body(bench, together, faults);
    together.arrive_and_wait(); // nobody looks into another's block after this
  });
  CHECK(faults.first() == "");
}

void run_slots_from(std::uint64_t start, Bench& bench, Faults& faults, const BlockLayout& layout) {
  const int rank = bench.team.rank();
  SlotChannel channel(bench.team, layout, bench.blocks);
  const Call calls[] = {alltoall(64), allgather(64), broadcast(64, 1)};
  for (std::uint64_t sequence = start; sequence < start + 40; ++sequence) {
    const Call& call = calls[sequence % std::size(calls)];
    Operands operands(call, rank, kBenchRanks, Memory::foreign, Memory::foreign);
    operands.prepare(sequence);
    const CollectiveDesc desc = operands.desc(Form::blocking);
    const Schedule schedule = plan_collective(plan_input(bench.team, desc, {64, 4096, 2}));
    const SlotProgram program = lower_slots(schedule, call_bits(desc), call.root);
    SlotRun run;
    run.begin(program, sequence, desc);
    faults.expect(soon([&] { return run.progress(channel); }), "slots stop at an edge");
    channel.complete(sequence);
    faults.expect(operands.check(sequence).empty(), operands.check(sequence));
  }
}

} // namespace

TEST_CASE("counters: slots go on beyond 2^32 and 2^63 operations") {
  const BlockLayout layout{kBenchRanks, 64, kBenchRanks, 8};
  for (const std::uint64_t edge : kEdges) {
    run_bench(layout, [&](Bench& bench, std::barrier<>& together, Faults& faults) {
      header_of(bench.block).done.store(edge - 21);
      header_of(bench.block).credit.store(edge - 21);
      together.arrive_and_wait();
      run_slots_from(edge - 20, bench, faults, layout);
    });
  }
}

namespace {

struct Table {
  std::barrier<>& together;
  std::vector<Offer>& offers; // of all ranks
  Faults& faults;
};

// Some epochs of a plan on rings; rank 0 begins alone and must then wait for the others.
void run_rings(Bench& bench, SignalCounts& counts, const Call& call, const Table& table) {
  const auto rank = static_cast<std::size_t>(bench.team.rank());
  const PlanLimits limits{0, 4096, 2};
  Operands operands(
      call, bench.team.rank(), kBenchRanks, rank == 1 ? Memory::mapped : Memory::foreign,
      rank == 2 ? Memory::mapped : Memory::foreign);
  const CollectiveDesc desc = operands.desc(Form::persistent);
  Offer& mine = table.offers[rank];
  mine = make_offer(desc, bench.team.topology);
  table.together.arrive_and_wait();
  const auto facts = facts_of(table.offers);
  table.together.arrive_and_wait();
  PlanInput input = plan_input(bench.team, desc, limits);
  input.facts = facts;
  const Guarded stage(Memory::mapped, stage_capacity(call.operation, kBenchRanks, limits));
  const std::byte* const base = bench.team.me().heap->base();
  mine.block = bench.team.me().lane_offset;
  mine.stage = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(stage.data()) - base);
  table.together.arrive_and_wait();
  const AddressBook book = make_book(bench.team, desc, table.offers);
  RingPlan plan(bench.team, counts, "a plan at an edge");
  plan.bind(
      lower(plan_collective(input), book, config().max_packet_bytes),
      make_windows(bench.team, desc, table.offers, book, stage.bytes()));
  for (std::uint64_t epoch = 1; epoch < 6; ++epoch) {
    operands.prepare(epoch);
    if (rank != 0) table.together.arrive_and_wait();
    plan.start();
    for (int i = 0; rank == 0 && i < 300; ++i) {
      table.faults.expect(plan.progress() == Poll::pending, "complete before others began");
    }
    if (rank == 0) table.together.arrive_and_wait();
    table.faults.expect(soon([&] { return plan.progress(); }), plan.missing());
    table.faults.expect(plan.status().ok(), plan.status().cause);
    table.faults.expect(operands.check(epoch).empty(), operands.check(epoch));
  }
  table.together.arrive_and_wait(); // the stage and the buffers are in use until here
}

} // namespace

TEST_CASE("counters: signals of rings go on beyond 2^32 and 2^63") {
  const Call calls[] = {
      alltoall(9000), {Operation::alltoall, true, 0, 9000}, allgather(9000), broadcast(9000, 0)};
  std::vector<Offer> offers(kBenchRanks);
  for (const std::uint64_t edge : kEdges) {
    run_bench({kBenchRanks, 0, 0, 0}, [&](Bench& bench, std::barrier<>& together, Faults& faults) {
      bench.team.topology.attach = false;
      SignalCounts counts{bench.block + BlockLayout::signals_offset(), {}};
      counts.base.assign(static_cast<std::size_t>(kSignalWords * kBenchRanks), edge - 3);
      for (std::size_t word = 0; word < counts.base.size(); ++word) {
        reinterpret_cast<std::atomic<std::uint64_t>*>(counts.words + word * kSignalStride)
            ->store(edge - 3);
      }
      together.arrive_and_wait();
      for (const Call& call : calls) run_rings(bench, counts, call, {together, offers, faults});
      const auto last = *std::max_element(counts.base.begin(), counts.base.end());
      faults.expect(last > edge, "no counter came to the edge");
    });
  }
}
