// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <algorithm>
#include <random>

#include "lib/schedule/schedule.hpp"
#include "lib/schedule/symbolic_memory.hpp"

namespace ferry::core {
namespace {

// One thing that can run on its own: a queue of a rank, or (queue < 0) the rank entering the epoch.
struct Runner {
  int rank = 0;
  int queue = 0;
  std::size_t next = 0;
  std::uint64_t priority = 0;
};

struct RankState {
  bool entered = false;
  int open_queues = 0;
  SymbolicMemory send, recv, slot, stage;
  SymbolicMemory delivered; // what of recv was written in this epoch
  std::vector<std::uint64_t> signals; // [kind * ranks + writer]
  [[nodiscard]] bool inside() const { return entered && open_queues > 0; }
};

// Runs the whole job, always the runnable thing of highest priority; priorities are drawn from the
// seed and redrawn now and then, which drives some ranks as far ahead of others as the waits allow.
class Verifier {
 public:
  Verifier(const std::vector<Schedule>& job, const VerifyInput& input, std::uint64_t seed)
      : job_(job), input_(input), random_(seed), states_(job.size()) {}

  std::string run();

 private:
  void prepare();
  bool can_run(const Runner& runner) const;
  void advance(Runner& runner);
  void run_step(const Runner& runner, const Step& step);
  void run_copy(const Runner& runner, const Step& step);
  void deliver(const Runner& runner, const Step& step, const std::vector<Segment>& data);
  void check_blocks(int rank);
  std::string leftovers() const;
  std::string over_budget() const;
  SymbolicMemory& memory(const Place& place);
  std::uint64_t pair(int from, int to) const;
  void write_sources(int rank);
  void check_block(int rank, int from, Origin expected, std::uint64_t bytes);
  void fault(const Runner& runner, const std::string& text);
  std::size_t ranks() const { return job_.size(); }

  const std::vector<Schedule>& job_;
  const VerifyInput& input_;
  std::mt19937_64 random_;
  std::vector<RankState> states_;
  std::vector<Runner> runners_;
  std::string fault_;
};

// Blocks lie far apart, whatever their size.
std::uint64_t address(const Place& place) {
  constexpr int kBlockBits = 44;
  return (static_cast<std::uint64_t>(place.block) << kBlockBits) + place.offset;
}

std::uint64_t Verifier::pair(int from, int to) const {
  if (input_.pair_bytes.empty()) return input_.block_bytes;
  return input_.pair_bytes[static_cast<std::size_t>(from) * ranks() + static_cast<std::size_t>(to)];
}

// What a rank has to send: every byte is known by its rank and its address.
void Verifier::write_sources(int rank) {
  RankState& state = states_[static_cast<std::size_t>(rank)];
  const Operation operation = job_[static_cast<std::size_t>(rank)].operation;
  if (operation == Operation::broadcast && rank != input_.root) return;
  const bool irregular = !input_.pair_bytes.empty();
  const bool whole = irregular || operation == Operation::alltoall || input_.in_place;
  auto& source = input_.in_place ? state.recv : state.send;
  for (int block = 0; block < (whole ? static_cast<int>(ranks()) : 1); ++block) {
    const std::uint64_t at = address({Buffer::send, rank, block, 0});
    source.write(at, {{irregular ? pair(rank, block) : input_.block_bytes, {rank, at}}});
  }
}

void Verifier::prepare() {
  const auto n = static_cast<int>(ranks());
  for (int rank = 0; rank < n; ++rank) {
    RankState& state = states_[static_cast<std::size_t>(rank)];
    const Schedule& schedule = job_[static_cast<std::size_t>(rank)];
    state.signals.assign((kSignalWords + 1) * ranks(), 0);
    write_sources(rank);
    state.entered = !input_.handshake;
    state.open_queues = static_cast<int>(schedule.queues.size());
    if (input_.handshake) runners_.push_back({rank, -1, 0, random_()});
    for (int q = 0; q < static_cast<int>(schedule.queues.size()); ++q) {
      runners_.push_back({rank, q, 0, random_()});
    }
  }
}

bool Verifier::can_run(const Runner& runner) const {
  const RankState& state = states_[static_cast<std::size_t>(runner.rank)];
  if (runner.queue < 0) return !state.entered;
  if (!state.entered) return false;
  const auto& queue =
      job_[static_cast<std::size_t>(runner.rank)].queues[static_cast<std::size_t>(runner.queue)];
  if (runner.next > queue.steps.size()) return false;
  if (runner.next == queue.steps.size()) return true; // leaving the queue
  const Step& step = queue.steps[runner.next];
  if (step.kind != StepKind::await) return true;
  const std::size_t word =
      static_cast<std::size_t>(step.signal) * ranks() + static_cast<std::size_t>(step.peer);
  return state.signals[word] >= step.ordinal;
}

void Verifier::fault(const Runner& runner, const std::string& text) {
  if (!fault_.empty()) return;
  const auto& queue =
      job_[static_cast<std::size_t>(runner.rank)].queues[static_cast<std::size_t>(runner.queue)];
  fault_ = fmt::format(
      "rank {} queue {} step {} ({}): {}", runner.rank, runner.queue, runner.next,
      print(queue.steps[runner.next]), text);
}

SymbolicMemory& Verifier::memory(const Place& place) {
  RankState& state = states_[static_cast<std::size_t>(place.rank)];
  switch (place.buffer) {
    case Buffer::send:
      return state.send;
    case Buffer::recv:
      return state.recv;
    case Buffer::slot:
      return state.slot;
    case Buffer::stage:
      return state.stage;
  }
  return state.send;
}

void Verifier::deliver(const Runner& runner, const Step& step, const std::vector<Segment>& data) {
  RankState& target = states_[static_cast<std::size_t>(step.to.rank)];
  if (target.delivered.touches(address(step.to), step.bytes)) fault(runner, "delivered twice");
  target.delivered.write(address(step.to), data);
}

void Verifier::run_copy(const Runner& runner, const Step& step) {
  for (const Place& place : {step.to, step.from}) {
    const bool users = place.buffer == Buffer::send || place.buffer == Buffer::recv;
    if (users && !states_[static_cast<std::size_t>(place.rank)].inside()) {
      fault(
          runner, fmt::format("buffer of rank {}, which has not entered or has left", place.rank));
    }
  }
  const auto data = memory(step.from).read(address(step.from), step.bytes);
  if (total_bytes(data) != step.bytes) fault(runner, "reads bytes that nobody wrote");
  if (step.to.buffer == Buffer::send) fault(runner, "writes a send buffer");
  if (step.to.buffer == Buffer::recv) deliver(runner, step, data);
  memory(step.to).write(address(step.to), data);
}

void Verifier::run_step(const Runner& runner, const Step& step) {
  if (step.kind == StepKind::copy) run_copy(runner, step);
  if (step.kind != StepKind::signal) return;
  const std::size_t word =
      static_cast<std::size_t>(step.signal) * ranks() + static_cast<std::size_t>(runner.rank);
  for (int rank = 0; rank < static_cast<int>(ranks()); ++rank) {
    const bool addressed = step.peer == kEveryone ? rank != runner.rank : rank == step.peer;
    if (addressed) ++states_[static_cast<std::size_t>(rank)].signals[word];
  }
}

void Verifier::advance(Runner& runner) {
  RankState& state = states_[static_cast<std::size_t>(runner.rank)];
  if (runner.queue < 0) {
    state.entered = true;
    return;
  }
  const auto& queue =
      job_[static_cast<std::size_t>(runner.rank)].queues[static_cast<std::size_t>(runner.queue)];
  if (runner.next < queue.steps.size()) {
    run_step(runner, queue.steps[runner.next]);
  } else {
    --state.open_queues;
  }
  ++runner.next;
  if (random_() % 16 == 0) runner.priority = random_();
}

void Verifier::check_block(int rank, int from, Origin expected, std::uint64_t bytes) {
  const auto data = states_[static_cast<std::size_t>(rank)].recv.read(
      address({Buffer::recv, rank, from, 0}), bytes);
  bool right = total_bytes(data) == bytes;
  for (const Segment& segment : data) {
    right =
        right && segment.origin.rank == expected.rank && segment.origin.offset == expected.offset;
    expected.offset += segment.bytes;
  }
  if (!right && fault_.empty()) {
    fault_ = fmt::format("rank {} did not get block {} as it was sent", rank, from);
  }
}

void Verifier::check_blocks(int rank) {
  const Operation operation = job_[static_cast<std::size_t>(rank)].operation;
  if (operation == Operation::broadcast) {
    if (rank != input_.root) check_block(rank, 0, {input_.root, 0}, input_.block_bytes);
    return;
  }
  const bool irregular = !input_.pair_bytes.empty();
  for (int from = 0; from < static_cast<int>(ranks()); ++from) {
    int block = 0;
    if (irregular || operation == Operation::alltoall) block = rank;
    if (!irregular && operation == Operation::allgather && input_.in_place) block = from;
    const Origin expected{from, address({Buffer::send, from, block, 0})};
    if (pair(from, rank) > 0) check_block(rank, from, expected, pair(from, rank));
  }
}

std::string Verifier::leftovers() const {
  for (const Runner& runner : runners_) {
    if (runner.queue < 0) continue;
    const auto& queue =
        job_[static_cast<std::size_t>(runner.rank)].queues[static_cast<std::size_t>(runner.queue)];
    if (runner.next < queue.steps.size()) {
      return fmt::format(
          "rank {} queue {} step {} ({}) waits for ever", runner.rank, runner.queue, runner.next,
          print(queue.steps[runner.next]));
    }
  }
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto expected = job_[rank].arrivals();
    for (std::size_t word = 0; word < expected.size(); ++word) {
      if (states_[rank].signals[word] != expected[word]) {
        return fmt::format(
            "rank {} gets {} signals of kind {} from rank {} but waits for {}", rank,
            states_[rank].signals[word], word / ranks(), word % ranks(), expected[word]);
      }
    }
  }
  return {};
}

// At most one ring each way for a pair, and no step beyond the slots and the stage that the
// schedule asks for.
std::string Verifier::over_budget() const {
  for (const Schedule& schedule : job_) {
    if (schedule.queues.size() > 2 * ranks()) {
      return fmt::format("rank {} has {} queues", schedule.rank, schedule.queues.size());
    }
    const std::uint64_t slots =
        static_cast<std::uint64_t>(schedule.slot_count) * schedule.slot_bytes;
    for (const StepQueue& queue : schedule.queues) {
      for (const Step& step : queue.steps) {
        if (step.kind != StepKind::copy || step.to.rank != schedule.rank) continue;
        const std::uint64_t end = step.to.offset + step.bytes;
        const bool outside = (step.to.buffer == Buffer::slot && end > slots) ||
                             (step.to.buffer == Buffer::stage && end > schedule.stage_bytes);
        if (outside) return fmt::format("rank {}: {} is beyond", schedule.rank, print(step));
      }
    }
  }
  return {};
}

std::string Verifier::run() {
  fault_ = over_budget();
  prepare();
  for (bool moving = true; moving && fault_.empty();) {
    Runner* best = nullptr;
    for (Runner& runner : runners_) {
      if (can_run(runner) && (best == nullptr || runner.priority > best->priority)) best = &runner;
    }
    moving = best != nullptr;
    if (moving) advance(*best);
  }
  if (fault_.empty()) fault_ = leftovers();
  for (int rank = 0; rank < static_cast<int>(ranks()) && fault_.empty(); ++rank) check_blocks(rank);
  return fault_;
}

} // namespace

std::string verify(const std::vector<Schedule>& job, const VerifyInput& input, std::uint64_t seed) {
  return Verifier(job, input, seed).run();
}

} // namespace ferry::core
