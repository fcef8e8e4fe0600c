// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/engine/engine.hpp"
#include "lib/exec/block.hpp"
#include "lib/exec/team.hpp"
#include "lib/schedule/lower.hpp"

namespace ferry::core {

// Signal words of this rank in a block, and how far each was counted in epochs that are over. All
// plans that use the block share them, one after the other.
struct SignalCounts {
  std::byte* words = nullptr;
  std::vector<std::uint64_t> base;

  [[nodiscard]] std::uint64_t seen(std::size_t word) const {
    const auto* counter =
        reinterpret_cast<const std::atomic<std::uint64_t>*>(words + word * kSignalStride);
    return counter->load(std::memory_order_acquire);
  }
};

// A plan on the engine path. The packets of one epoch are encoded once and stand twice in each
// ring, which is two laps long: a start sets the references of the polls in the lap that is free
// and moves the doorbell on by one lap.
class RingPlan {
 public:
  RingPlan(Team& team, SignalCounts& counts, std::string label);
  ~RingPlan();
  RingPlan(const RingPlan&) = delete;
  RingPlan& operator=(const RingPlan&) = delete;

  // Take new addresses; the plan must not be running. windows: all memory the packets may touch.
  void bind(Program program, WindowSet windows);

  void start();
  // ready when complete or failed; a failure is in status().
  Poll progress();
  [[nodiscard]] const Status& status() const { return status_; }
  // What is missing, for people.
  [[nodiscard]] std::string missing() const;

 private:
  struct Lap {
    std::uint64_t bytes = 0;
    std::uint64_t started = 0;
  };

  void write_image(std::size_t ring);
  void patch(std::size_t ring, std::uint64_t lap);
  void begin_host();
  bool run_host();
  bool host_step(const HostOp& op);

  Team& team_;
  SignalCounts& counts_;
  std::string label_;
  Program program_;
  WindowSet windows_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<Queue*> list_;
  std::vector<Lap> laps_;
  std::vector<std::size_t> next_host_; // of each host queue
  std::size_t open_host_ = 0; // host queues that are not done
  bool rings_drained_ = true;
  bool running_ = false;
  Status status_;
};

} // namespace ferry::core
