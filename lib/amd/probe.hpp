// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
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

// One trial: copies that lie one behind the other, a word of the peer and an own one that go up, a
// poll of the own one, and a mark for the host.
struct ProbeRoute {
  std::uint64_t to = 0;
  std::uint64_t from = 0;
  std::uint64_t peer_word = 0;
  std::uint64_t own_word = 0;
  const std::uint64_t* mark = nullptr;
  std::span<const std::uint64_t> sizes;
};
[[nodiscard]] std::vector<std::uint32_t> probe_packets(
    device::Generation generation, const ProbeRoute& route);

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
