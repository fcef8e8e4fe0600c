// SPDX-License-Identifier: MIT
// Jobs for the model engine: scripts of collectives, played by rank threads, or by one thread that
// only looks, so that a seed replays the whole job.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lib/engine/model_engine.hpp"
#include "tests/support/thread_job.hpp"

namespace ferry::test {

// A call that a script makes once or several times. Each rank has its memory where its entry says.
struct Entry {
  Call call;
  core::Form form = core::Form::blocking;
  std::vector<Memory> send;
  std::vector<Memory> recv;
};

struct Script {
  std::uint64_t seed = 0;
  int ranks = 2;
  std::vector<Entry> entries;
  std::vector<std::size_t> order; // which entries are called, on every rank
};

// A few calls of any kind, on 2 to 5 ranks.
[[nodiscard]] Script random_script(std::uint64_t seed);

// Every operation, in place and not, in every form. placing: 0 .. 2 as in Memory, 3 is a mixture.
inline constexpr int kPlacings = 4;
[[nodiscard]] Script grid_script(std::uint64_t seed, int ranks, int placing);

// One rank's way through a script, in small steps.
class Player {
 public:
  Player(const Script& script, Comm comm, int rank);
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  // Collective and waits for the other ranks.
  void make_plans();
  [[nodiscard]] bool finished() const;
  // Issues a call, looks at one that is under way, or completes it.
  void step();
  // The same, but waits for what is under way.
  void step_or_wait();
  // "" as long as all is well; nothing more is done after a fault.
  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] const core::Status& status() const { return status_; }
  [[nodiscard]] std::uint64_t completed() const { return completed_; }

 private:
  struct Seat {
    std::unique_ptr<Operands> operands;
    std::unique_ptr<core::PersistentPlan> plan;
    std::unique_ptr<core::LaneOp> op; // while a call without plan is under way
    std::uint64_t iteration = 0;
  };

  [[nodiscard]] bool may_issue() const;
  void issue();
  void complete(std::size_t flight, const core::Status& status);
  core::Poll look(Seat& seat);
  core::Status wait(Seat& seat);

  const Script& script_;
  const Comm comm_; // outlives the plans in the seats
  const int rank_;
  std::mt19937_64 random_;
  std::vector<Seat> seats_;
  std::vector<std::size_t> flights_; // entries under way
  std::size_t next_ = 0; // in the order of the script
  std::uint64_t completed_ = 0;
  std::string fault_;
  core::Status status_;
};

// The engine of this process, which a call of either play function restarts with the seed of the
// script or with settings of its own.
[[nodiscard]] core::ModelEngine& model_engine();

// "", or the first fault. One thread drives all ranks in an order drawn from the seed.
[[nodiscard]] std::string play_alone(const Script& script, core::ModelSettings settings = {});

// A thread for each rank. statuses: how each rank ended, for jobs that are meant to fail.
[[nodiscard]] std::string play_threads(
    const Script& script, core::ModelSettings settings = {},
    std::vector<core::Status>* statuses = nullptr);

} // namespace ferry::test
