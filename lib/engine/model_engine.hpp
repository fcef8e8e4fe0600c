// SPDX-License-Identifier: MIT
#pragma once

// An engine for tests that uses every freedom which hardware leaves to an engine, drawn from a
// seed. What holds on it does not depend on the timing of a kinder one. Not part of the library.
//
// Kept: packets of a queue start in order, below the doorbell; a copy or fill begins when the
// copies, fills and writes before it have landed; ATOMIC, FENCE and TRAP take effect when all
// before them has. Not kept: anything else. Queues run free of each other; copies land in parts in
// any order; a WRITE overtakes what is before it; signals are late, and copies behind them may be
// early; rptr may pass a packet that has not landed; queues stand still for a while.

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "lib/engine/engine.hpp"

namespace ferry::core {

// The packet'th packet of the queue that was submitted queue'th, both from 0.
struct ModelTarget {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t queue = kNone;
  std::uint64_t packet = 0;
};

struct ModelSettings {
  static constexpr std::uint64_t kForEver = ~std::uint64_t{0};
  std::uint64_t seed = 1;
  bool early_polls = false; // polls that do not hold may let their queue pass, as on gfx90x
  ModelTarget bad_packet; // arrives with an opcode that nobody knows
  ModelTarget stall; // the queue does not start this packet
  std::uint64_t stall_turns = kForEver; // for so many calls of progress(); for ever: it died
};

// How often the engine used its freedom since its last restart.
struct ModelCounts {
  std::atomic<std::uint64_t> steps{0};
  std::atomic<std::uint64_t> parted_copies{0}; // landed in more than one part
  std::atomic<std::uint64_t> overtaking_writes{0}; // landed before a copy that started before
  std::atomic<std::uint64_t> late_signals{0}; // a later packet had started when they took effect
  std::atomic<std::uint64_t> early_polls{0}; // passed although they did not hold
  std::atomic<std::uint64_t> stalls{0};
  // A sum over all steps of what was done and as how-manieth: the same for the same run.
  std::atomic<std::uint64_t> trace{0};
};

class ModelQueue;

// Moves queues in progress(), and only those that it is given, so that ranks which share the engine
// share nothing else: it orders none of their accesses for a race detector. Where one thread makes
// all calls the same seed gives the same run.
class ModelEngine final : public Engine {
 public:
  explicit ModelEngine(const ModelSettings& settings);
  ~ModelEngine() override;

  [[nodiscard]] const char* name() const override { return "model"; }
  void submit(std::span<Queue* const> queues) override;
  QueueState progress(std::span<Queue* const> queues) override;
  // What was started and has not landed never will.
  void retire(std::span<Queue* const> queues) override;

  // Between two runs, when nobody calls and no queue has work.
  void restart(const ModelSettings& settings);
  [[nodiscard]] const ModelCounts& counts() const { return counts_; }

 private:
  // One lock for all queues would order the accesses of all ranks.
  struct Stripe {
    std::mutex mutex;
    std::map<const Queue*, std::unique_ptr<ModelQueue>> queues;
  };

  Stripe& stripe(const Queue* queue);
  ModelQueue& state(const Queue* queue);

  ModelSettings settings_;
  ModelCounts counts_;
  std::atomic<std::uint64_t> submitted_{0}; // queues
  std::array<Stripe, 61> stripes_;
};

} // namespace ferry::core
