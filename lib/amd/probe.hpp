// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/amd/devices.hpp"
#include "lib/amd/sdma_plan.hpp"
#include "lib/exec/device_backend.hpp"

namespace ferry::amd {

// Where the trial of queues takes place: an arena in the memory of each rank's GPU, and words next
// to the signals of the plan, one for each rank that raises it.
struct ProbeGround {
  std::byte* arena = nullptr; // of this rank
  std::vector<std::uint64_t> arenas; // of all ranks, for the engines of this one
  std::vector<std::uint64_t> words; // first word of each rank
  std::vector<std::uint64_t*>
      marks; // of this rank's host, one for each queue: its end is told there
};

// What an arena takes, and the words.
[[nodiscard]] std::size_t probe_arena_bytes(int ranks);
[[nodiscard]] std::size_t probe_word_bytes(int ranks);

// Before the place of the arena is told. Throws Failure.
void stamp_arena(const Devices& devices, std::byte* arena, int rank);

struct ProbeQueue {
  SdmaQueue* queue = nullptr;
  int peer = 0;
};

// Collective. Each of these queues copies stamped blocks of several sizes into the arena of its
// peer, raises a word there, waits for one of its own and tells its host: all within a limit of
// time; then every receiver looks at what came. The verdict on each queue, in the order given:
// empty, or what is wrong with it.
[[nodiscard]] std::vector<std::string> probe_queues(
    const Devices& devices, core::DeviceTeam& team, const std::vector<ProbeQueue>& queues,
    const ProbeGround& ground, device::Generation generation);

} // namespace ferry::amd
