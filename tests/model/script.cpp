// SPDX-License-Identifier: MIT
#include "script.hpp"

#include <algorithm>
#include <stdexcept>

namespace ferry::test {

namespace {

using core::Form;
using core::Operation;
using core::Poll;
using core::Status;

constexpr Operation kOperations[] = {
    Operation::alltoall, Operation::allgather, Operation::broadcast};
constexpr Form kForms[] = {Form::blocking, Form::nonblocking, Form::persistent};
constexpr std::size_t kMostFlights = 3; // of one rank
constexpr int kFruitlessSteps = 1'000'000; // of all ranks: no job needs as many for one call

Memory random_memory(std::mt19937_64& random) {
  return static_cast<Memory>(random() % 3);
}

void place_anywhere(Entry& entry, int ranks, std::mt19937_64& random) {
  for (int rank = 0; rank < ranks; ++rank) {
    entry.send.push_back(random_memory(random));
    entry.recv.push_back(random_memory(random));
  }
}

} // namespace

Script random_script(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Script script{seed, 2 + static_cast<int>(random() % 4), {}, {}};
  const std::size_t sizes[] = {1, 64, 777, 4096, 8192, 8193, 12289, 20000};
  for (auto left = 2 + random() % 3; left > 0; --left) {
    const Operation operation = kOperations[random() % 3];
    const bool broadcast = operation == Operation::broadcast;
    const auto root = broadcast ? random() % static_cast<std::uint64_t>(script.ranks) : 0;
    const bool in_place = !broadcast && random() % 3 == 0;
    Entry entry{
        {operation, in_place, static_cast<int>(root), sizes[random() % std::size(sizes)]},
        kForms[random() % 3],
        {},
        {}};
    place_anywhere(entry, script.ranks, random);
    script.entries.push_back(std::move(entry));
  }
  for (int i = 0; i < 10; ++i) script.order.push_back(random() % script.entries.size());
  return script;
}

Script grid_script(std::uint64_t seed, int ranks, int placing) {
  std::mt19937_64 random(seed);
  Script script{seed, ranks, {}, {}};
  for (const Operation operation : kOperations) {
    for (const Form form : kForms) {
      for (const bool other : {false, true}) {
        const bool broadcast = operation == Operation::broadcast;
        const int root = broadcast && other ? ranks - 1 : 0;
        const auto all = static_cast<std::size_t>(ranks);
        const auto where = static_cast<Memory>(placing % 3);
        Entry entry{{operation, other && !broadcast, root, 1 + random() % 13000}, form, {}, {}};
        if (placing < 3) entry.send.assign(all, where);
        if (placing < 3) entry.recv.assign(all, where);
        if (placing == 3) place_anywhere(entry, ranks, random);
        for (int start = 0; start < 3; ++start) script.order.push_back(script.entries.size());
        script.entries.push_back(std::move(entry));
      }
    }
  }
  std::shuffle(script.order.begin(), script.order.end(), random);
  return script;
}

Player::Player(const Script& script, Comm comm, int rank)
    : script_(script),
      comm_(std::move(comm)),
      rank_(rank),
      random_(script.seed * 1000 + static_cast<std::uint64_t>(rank)),
      seats_(script.entries.size()) {
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const Entry& entry = script.entries[i];
    const auto at = static_cast<std::size_t>(rank);
    seats_[i].operands =
        std::make_unique<Operands>(entry.call, rank, script.ranks, entry.send[at], entry.recv[at]);
  }
}

void Player::make_plans() {
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (script_.entries[i].form != Form::persistent) continue;
    seats_[i].plan = comm_->make_plan(seats_[i].operands->desc(Form::persistent));
  }
}

bool Player::finished() const {
  return !fault_.empty() || (next_ == script_.order.size() && flights_.empty());
}

void Player::step() {
  if (finished()) return;
  if (may_issue() && (flights_.empty() || random_() % 3 == 0)) return issue();
  const std::size_t flight = random_() % flights_.size();
  Seat& seat = seats_[flights_[flight]];
  if (look(seat) == Poll::pending) return;
  complete(flight, seat.op != nullptr ? seat.op->status : seat.plan->status());
}

void Player::step_or_wait() {
  if (finished()) return;
  if (may_issue() && (flights_.empty() || random_() % 2 == 0)) return issue();
  const std::size_t flight = random_() % flights_.size();
  dawdle(random_);
  complete(flight, wait(seats_[flights_[flight]]));
}

// A blocking call is alone from its issue to its end, except for plans that were started before.
bool Player::may_issue() const {
  if (next_ == script_.order.size() || flights_.size() >= kMostFlights) return false;
  return std::none_of(flights_.begin(), flights_.end(), [this](std::size_t entry) {
    return entry == script_.order[next_] || script_.entries[entry].form == Form::blocking;
  });
}

void Player::issue() {
  const std::size_t entry = script_.order[next_++];
  Seat& seat = seats_[entry];
  seat.operands->prepare(++seat.iteration);
  flights_.push_back(entry);
  if (seat.plan != nullptr) {
    const Status status = comm_->start(*seat.plan);
    if (!status.ok()) complete(flights_.size() - 1, status);
    return;
  }
  seat.op = std::make_unique<core::LaneOp>();
  seat.op->desc = seat.operands->desc(script_.entries[entry].form);
  comm_->post(*seat.op);
}

Poll Player::look(Seat& seat) {
  return seat.op != nullptr ? comm_->look(*seat.op) : comm_->look(*seat.plan);
}

Status Player::wait(Seat& seat) {
  return seat.op != nullptr ? comm_->wait(*seat.op) : comm_->wait(*seat.plan);
}

void Player::complete(std::size_t flight, const Status& status) {
  const std::size_t entry = flights_[flight];
  Seat& seat = seats_[entry];
  status_ = status;
  fault_ = status.ok() ? seat.operands->check(seat.iteration) : status.cause;
  if (!fault_.empty()) {
    fault_ = "TEST_SEED=" + std::to_string(script_.seed) + ", rank " + std::to_string(rank_) +
             ": " + fault_ + " (" + describe(script_.entries[entry].call) + ")";
    return; // what is under way here stays so
  }
  seat.op.reset();
  flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(flight));
  ++completed_;
}

core::ModelEngine& model_engine() {
  static auto* const engine = [] {
    auto* const made = new core::ModelEngine({}); // used until the process ends
    if (!core::install_engine(*made)) throw std::logic_error("another engine came first");
    return made;
  }();
  return *engine;
}

namespace {

// The ranks of one job. Communicators are made in the order of ranks, which is that of serving.
struct Job {
  explicit Job(const Script& script) {
    const auto meeting = std::make_shared<Meeting>(script.ranks);
    for (int rank = 0; rank < script.ranks; ++rank) {
      players.push_back(
          std::make_unique<Player>(script, make_comm(meeting, rank, "the model's"), rank));
    }
  }
  [[nodiscard]] Player& player(int rank) { return *players[static_cast<std::size_t>(rank)]; }

  std::vector<std::unique_ptr<Player>> players;
};

void restart(const Script& script, core::ModelSettings settings) {
  settings.seed = script.seed;
  model_engine().restart(settings);
}

} // namespace

std::string play_alone(const Script& script, core::ModelSettings settings) {
  restart(script, settings);
  Job job(script);
  Faults faults;
  run_ranks(script.ranks, faults, [&](int rank) { job.player(rank).make_plans(); });
  if (!faults.first().empty()) return faults.first();
  std::mt19937_64 random(script.seed);
  std::uint64_t completed = 0;
  for (int fruitless = 0; fruitless < kFruitlessSteps; ++fruitless) {
    const auto rank = static_cast<int>(random() % static_cast<std::uint64_t>(script.ranks));
    job.player(rank).step();
    if (!job.player(rank).fault().empty()) return job.player(rank).fault();
    std::uint64_t now = 0;
    bool finished = true;
    for (const auto& player : job.players) {
      now += player->completed();
      finished &= player->finished();
    }
    if (finished) return "";
    if (now != completed) fruitless = 0;
    completed = now;
  }
  return "TEST_SEED=" + std::to_string(script.seed) + ": no call ends any more";
}

std::string play_threads(
    const Script& script, core::ModelSettings settings, std::vector<Status>* statuses) {
  restart(script, settings);
  Job job(script);
  Faults faults;
  run_ranks(script.ranks, faults, [&](int rank) {
    Player& player = job.player(rank);
    player.make_plans();
    const std::size_t steps = 4 * script.order.size(); // each issues a call or completes one
    for (std::size_t i = 0; i < steps && !player.finished(); ++i) player.step_or_wait();
    faults.expect(player.fault().empty(), player.fault());
    faults.expect(player.finished(), "a rank did not finish its script");
  });
  if (statuses != nullptr) {
    for (const auto& player : job.players) statuses->push_back(player->status());
  }
  return faults.first();
}

} // namespace ferry::test
