// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "lib/config/config.hpp"
#include "lib/memory/heap.hpp"

namespace ferry::core {

// What a rank tells all others of its communicator, once. Sent as bytes.
struct RankCard {
  HeapId heap;
  Config config;
  std::uint64_t table = 0; // fingerprint of the table that it plans by
  std::uint64_t lane_offset = 0; // of its lane block in its heap
  std::uint64_t start_time = 0; // of the process, so that a reused pid is not taken for it
  std::uint64_t boot_id = 0; // hash of the kernel's boot id: equal on one node
  std::uint64_t cpus[16] = {}; // CPUs this rank may run on
  std::int32_t pid = 0;
  std::int32_t node = 0; // as FERRY_NODES pretends; ranks with others do not try to share
  std::int32_t ranks_on_node = 0; // as the launcher says, 0 when it does not
  std::int32_t usable = 0; // 0: no shared memory here, see reason
  char reason[100] = {};
};
static_assert(std::is_trivially_copyable_v<RankCard>);

// How the ranks of a communicator can reach each other; alike on all ranks.
struct Topology {
  int rank = 0;
  int ranks = 1;
  bool shared = false; // every rank maps every heap
  bool attach = false; // every rank can read private memory of every other
  bool oversubscribed = false; // more ranks than cores on this node
  int cores = 1;
  std::string why_not_shared;
};

// The facts of this process, without heap and lane.
[[nodiscard]] RankCard describe_rank(const Config& config);
// Cores and oversubscription of the machine of `mine`, out of all cards.
void count_cores(const std::vector<RankCard>& cards, const RankCard& mine, Topology& topology);
// Throws Failure(configuration) naming rank and variable when ranks disagree where they must not.
void require_equal_configuration(const std::vector<RankCard>& cards);
// Does the process still run (neither gone, nor a zombie, nor another one under its number)?
[[nodiscard]] bool is_alive(int pid, std::uint64_t start_time);
// Start time of a process in clock ticks since boot, 0 when it does not run.
[[nodiscard]] std::uint64_t start_time_of(int pid);

} // namespace ferry::core
