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
  void fault(const Runner& runner, const std::string& text);
  std::size_t ranks() const { return job_.size(); }

  const std::vector<Schedule>& job_;
  const VerifyInput& input_;
  std::mt19937_64 random_;
  std::vector<RankState> states_;
  std::vector<Runner> runners_;
  std::string fault_;
};

void Verifier::prepare() {
  const auto n = static_cast<int>(ranks());
  const std::uint64_t block = input_.block_bytes;
  const std::uint64_t all = block * ranks();
  for (int rank = 0; rank < n; ++rank) {
    RankState& state = states_[static_cast<std::size_t>(rank)];
    const Schedule& schedule = job_[static_cast<std::size_t>(rank)];
    state.signals.assign((kSignalWords + 1) * ranks(), 0);
    const bool everywhere = schedule.operation != Operation::broadcast || rank == input_.root;
    const bool whole = schedule.operation == Operation::alltoall || input_.in_place;
    auto& source = input_.in_place ? state.recv : state.send;
    if (everywhere) source.write(0, {{whole ? all : block, {rank, 0}}});
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
  if (target.delivered.touches(step.to.offset, step.bytes)) fault(runner, "delivered twice");
  target.delivered.write(step.to.offset, data);
}

void Verifier::run_copy(const Runner& runner, const Step& step) {
  for (const Place& place : {step.to, step.from}) {
    const bool users = place.buffer == Buffer::send || place.buffer == Buffer::recv;
    if (users && !states_[static_cast<std::size_t>(place.rank)].inside()) {
      fault(
          runner, fmt::format("buffer of rank {}, which has not entered or has left", place.rank));
    }
  }
  const auto data = memory(step.from).read(step.from.offset, step.bytes);
  if (total_bytes(data) != step.bytes) fault(runner, "reads bytes that nobody wrote");
  if (step.to.buffer == Buffer::send) fault(runner, "writes a send buffer");
  if (step.to.buffer == Buffer::recv) deliver(runner, step, data);
  memory(step.to).write(step.to.offset, data);
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

void Verifier::check_blocks(int rank) {
  const Schedule& schedule = job_[static_cast<std::size_t>(rank)];
  const std::uint64_t block = input_.block_bytes;
  const bool broadcast = schedule.operation == Operation::broadcast;
  if (block == 0 || (broadcast && rank == input_.root)) return;
  const int blocks = broadcast ? 1 : static_cast<int>(ranks());
  for (int from = 0; from < blocks; ++from) {
    Origin expected{broadcast ? input_.root : from, 0};
    if (schedule.operation == Operation::alltoall) {
      expected.offset = static_cast<std::uint64_t>(rank) * block;
    } else if (schedule.operation == Operation::allgather && input_.in_place) {
      expected.offset = static_cast<std::uint64_t>(from) * block;
    }
    const auto data = states_[static_cast<std::size_t>(rank)].recv.read(
        static_cast<std::uint64_t>(from) * block, block);
    bool right = total_bytes(data) == block;
    for (const Segment& segment : data) {
      right =
          right && segment.origin.rank == expected.rank && segment.origin.offset == expected.offset;
      expected.offset += segment.bytes;
    }
    if (!right && fault_.empty()) {
      fault_ = fmt::format("rank {} did not get block {} as it was sent", rank, from);
    }
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
