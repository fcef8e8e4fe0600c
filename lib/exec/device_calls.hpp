// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "lib/exec/persistent.hpp"

namespace ferry::core {

// The plans that blocking calls on device memory share (FERRY_DEVICE_CALLS=plans). Counts and
// buffers of a call are known to its rank alone, so that before each call every rank tells what it
// has: a number that all have the same means the plan that all made together for this very call.
// Everything but what look() says follows from these cards, and is alike on all ranks.
class DeviceCalls {
 public:
  struct Card {
    std::uint64_t plan = 0; // number of the plan for this call; 0: none
    std::uint64_t ready = 0; // 1: the call comes again, all of it in allocations that are known
  };
  enum class Decision { host, run, make };

  [[nodiscard]] Card look(const CollectiveDesc& desc);
  [[nodiscard]] Decision decide(const std::vector<Card>& cards);
  // Of the call that look() was asked about last. A plan of the host is not kept, and the call not
  // tried again.
  PersistentPlan& plan() { return *current_->plan; }
  [[nodiscard]] bool keep(std::unique_ptr<PersistentPlan> plan);
  void drop(); // after an error

 private:
  struct Call {
    CollectiveDesc desc;
    std::uint64_t send = 0; // allocations
    std::uint64_t recv = 0;
    int seen = 0;
    bool refused = false;
    std::uint64_t number = 0; // of the plan; 0: none
    std::unique_ptr<PersistentPlan> plan;
  };
  static constexpr std::size_t kCalls = 16; // that a rank remembers
  // Each holds a queue for each peer, of which a GPU has few, and keeps buffers mapped at peers.
  static constexpr int kPlans = 2;

  void make_room();

  std::list<Call> calls_; // the last one first
  Call* current_ = nullptr;
  std::uint64_t made_ = 0;
  std::vector<std::uint64_t> kept_; // numbers of plans, the one that ran last at the end
};

} // namespace ferry::core
