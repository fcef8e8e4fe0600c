// SPDX-License-Identifier: MIT
#include "lib/schedule/simulate.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ferry::core {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kKeptSteps = 2'000'000; // about 200 MB of schedules
constexpr std::size_t kKinds = kSignalWords + 1;

// When signals arrive. The first of each writer and kind lies in an array of the waiter, the others
// in a map; what is addressed to everyone is stored once, with the writer.
class Arrivals {
 public:
  explicit Arrivals(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  void add(std::size_t kind, int writer, int waiter, double when) {
    if (waiter == kEveryone) {
      more_[key(kind, writer, kEveryone)].push_back(when);
      return;
    }
    auto& first = first_[kind];
    if (first.empty()) first.resize(ranks_);
    auto& mine = first[static_cast<std::size_t>(waiter)];
    if (mine.empty()) mine.assign(ranks_, kUnknown);
    double& slot = mine[static_cast<std::size_t>(writer)];
    if (slot == kUnknown) {
      slot = when;
    } else {
      more_[key(kind, writer, waiter)].push_back(when);
    }
  }

  double of(std::size_t kind, int writer, int waiter, std::uint64_t ordinal) const {
    const auto& first = first_[kind];
    if (!first.empty() && !first[static_cast<std::size_t>(waiter)].empty()) {
      const double one = first[static_cast<std::size_t>(waiter)][static_cast<std::size_t>(writer)];
      if (one != kUnknown) return ordinal == 1 ? one : later(kind, writer, waiter, ordinal - 2);
    }
    return later(kind, writer, kEveryone, ordinal - 1);
  }

 private:
  using Key = std::uint64_t;
  static Key key(std::size_t kind, int writer, int waiter) {
    return (static_cast<Key>(kind) << 60) | (static_cast<Key>(writer) << 30) |
           static_cast<Key>(waiter + 1);
  }
  double later(std::size_t kind, int writer, int waiter, std::uint64_t index) const {
    const auto found = more_.find(key(kind, writer, waiter));
    return found == more_.end() || index >= found->second.size() ? kUnknown : found->second[index];
  }

  std::size_t ranks_;
  std::vector<std::vector<double>> first_[kKinds]; // [waiter][writer]
  std::unordered_map<Key, std::vector<double>> more_;
};

struct RankState {
  std::optional<Schedule> kept;
  std::vector<std::uint32_t> next; // step of each queue
  std::vector<double> engines; // time of each queue's engine, where they have their own
  double clock = 0;
  bool over = false;
};

class Simulator {
 public:
  explicit Simulator(const SimulateInput& input)
      : input_(input),
        arrivals_(input.ranks),
        states_(input.symmetric ? 1 : static_cast<std::size_t>(input.ranks)) {}

  Simulation run();

 private:
  bool visit(int rank);
  void run_together(int rank, const Schedule& schedule);
  void run_apart(int rank, const Schedule& schedule);
  double run_queue(int rank, const StepQueue& queue, std::uint32_t& next, double& clock);
  void run_step(int rank, const Step& step, double& clock);
  double arrival(int rank, const Step& step) const {
    return arrivals_.of(static_cast<std::size_t>(step.signal), step.peer, rank, step.ordinal);
  }
  std::string stuck();

  const SimulateInput& input_;
  Arrivals arrivals_;
  std::vector<RankState> states_;
  std::uint64_t kept_steps_ = 0;
  Simulation result_;
};

void Simulator::run_step(int rank, const Step& step, double& clock) {
  ++result_.steps;
  const StepCosts& costs = input_.costs;
  if (step.kind == StepKind::copy) {
    result_.bytes += step.bytes;
    clock += costs.copy + costs.byte * static_cast<double>(step.bytes);
    return;
  }
  if (step.kind == StepKind::await) {
    clock = std::max(clock, arrival(rank, step)) + costs.await;
    return;
  }
  clock += costs.signal;
  const auto kind = static_cast<std::size_t>(step.signal);
  const double when = clock + costs.flight;
  if (step.peer == kEveryone && input_.symmetric) {
    for (int writer = 1; writer < input_.ranks; ++writer) arrivals_.add(kind, writer, 0, when);
  } else if (input_.symmetric) { // as far from rank 0 as the peer is, the other way round
    arrivals_.add(kind, (input_.ranks - step.peer) % input_.ranks, 0, when);
  } else {
    arrivals_.add(kind, rank, step.peer, when);
  }
}

// Runs what can run by `clock`; then the time at which the queue could go on, which is not known
// while the signal has not been sent, and of no interest at its end.
double Simulator::run_queue(int rank, const StepQueue& queue, std::uint32_t& next, double& clock) {
  for (; next < queue.steps.size(); ++next) {
    const Step& step = queue.steps[next];
    if (step.kind == StepKind::await) {
      const double when = arrival(rank, step);
      if (when > clock) return when;
    }
    run_step(rank, step, clock);
  }
  return kUnknown;
}

// One thread takes the queue that can go on first.
void Simulator::run_together(int rank, const Schedule& schedule) {
  RankState& state = states_[static_cast<std::size_t>(rank)];
  using Entry = std::pair<double, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> waiting;
  for (std::size_t q = 0; q < schedule.queues.size(); ++q) waiting.emplace(0.0, q);
  while (waiting.size() > 0) {
    const auto [when, q] = waiting.top();
    waiting.pop();
    state.clock = std::max(state.clock, when);
    const double then = run_queue(rank, schedule.queues[q], state.next[q], state.clock);
    if (then != kUnknown) waiting.emplace(then, q);
  }
}

// Each queue goes on as soon as its signals allow.
void Simulator::run_apart(int rank, const Schedule& schedule) {
  RankState& state = states_[static_cast<std::size_t>(rank)];
  for (std::size_t q = 0; q < schedule.queues.size(); ++q) {
    double& clock = state.engines[q];
    for (double when = 0; when != kUnknown;) {
      clock = std::max(clock, when);
      when = run_queue(rank, schedule.queues[q], state.next[q], clock);
    }
    state.clock = std::max(state.clock, clock);
  }
}

// One go of a rank, as far as signals that are known take it. True if it moved.
bool Simulator::visit(int rank) {
  RankState& state = states_[static_cast<std::size_t>(rank)];
  const bool kept = state.kept.has_value();
  if (!kept) {
    state.kept = input_.plan(rank);
    ++result_.plans;
  }
  const Schedule& schedule = *state.kept;
  state.next.resize(schedule.queues.size());
  state.engines.resize(input_.one_thread ? 0 : schedule.queues.size());
  const std::uint64_t before = result_.steps;
  input_.one_thread ? run_together(rank, schedule) : run_apart(rank, schedule);
  std::uint64_t left = 0;
  std::uint64_t all = 0;
  for (std::size_t q = 0; q < schedule.queues.size(); ++q) {
    all += schedule.queues[q].steps.size();
    left += schedule.queues[q].steps.size() - state.next[q];
  }
  state.over = left == 0;
  const bool keep = !state.over && (kept || kept_steps_ + all <= kKeptSteps);
  if (keep && !kept) kept_steps_ += all;
  if (!keep && kept) kept_steps_ -= all;
  if (!keep) state.kept.reset();
  return result_.steps > before;
}

std::string Simulator::stuck() {
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    if (states_[rank].over) continue;
    const Schedule schedule = input_.plan(static_cast<int>(rank));
    for (std::size_t q = 0; q < schedule.queues.size(); ++q) {
      const auto& steps = schedule.queues[q].steps;
      const std::uint32_t next = states_[rank].next[q];
      if (next == steps.size()) continue;
      return fmt::format(
          "rank {} queue {} step {} ({}) waits for ever", rank, q, next, print(steps[next]));
    }
  }
  return {};
}

Simulation Simulator::run() {
  for (bool moving = true; moving;) {
    moving = false;
    for (std::size_t rank = 0; rank < states_.size(); ++rank) {
      if (!states_[rank].over) moving = visit(static_cast<int>(rank)) || moving;
    }
  }
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    if (states_[rank].clock <= result_.ns) continue;
    result_.ns = states_[rank].clock;
    result_.last = static_cast<int>(rank);
  }
  result_.fault = stuck();
  return result_;
}

} // namespace

Simulation simulate(const SimulateInput& input) {
  return Simulator(input).run();
}

} // namespace ferry::core
