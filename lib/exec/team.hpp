// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/base/wait.hpp"
#include "lib/engine/engine.hpp"
#include "lib/memory/peer_heap.hpp"
#include "lib/topology/topology.hpp"

namespace ferry::core {

// One rank of a communicator as this process sees it.
struct Member {
  std::shared_ptr<PeerHeap> heap;
  std::uint64_t lane_offset = 0;
  std::uint64_t start_time = 0;
  int pid = 0;
  bool watched = false; // its pid means the same process here (pid namespaces may differ)
};

// The ranks of a communicator after set-up.
struct Team {
  std::string name; // of the communicator, for people
  Topology topology;
  std::vector<Member> members;
  WaitPolicy policy;

  [[nodiscard]] int rank() const { return topology.rank; }
  [[nodiscard]] int ranks() const { return topology.ranks; }
  [[nodiscard]] Member& member(int rank) { return members[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Member& member(int rank) const {
    return members[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] Member& me() { return member(rank()); }

  // Wake `rank` if it sleeps. A plain store that it waits for needs the fence, and gets it where
  // sleeping is common; elsewhere a lost wake-up costs a millisecond at most.
  void wake_rank(int rank, bool after_plain_store) {
    wake(member(rank).heap->header(), after_plain_store && topology.oversubscribed);
  }
  [[nodiscard]] SignalHook hook() {
    return {[](void* team, int rank) { static_cast<Team*>(team)->wake_rank(rank, false); }, this};
  }
  // An error naming a rank whose process has ended.
  [[nodiscard]] Status check_alive() const;
};

// The engine of this process, as configured.
[[nodiscard]] Engine& process_engine();

// For tests: an engine in place of the configured one, which lives until the process ends. Called
// by one thread before any other uses process_engine(); false when it comes too late.
[[nodiscard]] bool install_engine(Engine& engine);

} // namespace ferry::core
