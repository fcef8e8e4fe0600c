// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "device/start.hpp"
#include "device/team.hpp"
#include "lib/nvidia/handles.hpp"

namespace ferry::test {

// Words of an exchange that change with every round; the round is counted in device memory, so that
// a graph that is replayed sends other data each time.
struct Rounds {
  std::uint32_t* send;
  const std::uint32_t* recv;
  std::uint64_t words; // of a block
  int rank;
  int ranks;
  std::uint64_t* round; // advanced by launch_fill
  std::uint64_t* wrong; // counts
};
void launch_fill(const Rounds& rounds, hipStream_t stream);
void launch_check(const Rounds& rounds, hipStream_t stream);

// One thread: makes a start, waits until it is done, and so on. *nanoseconds gets the time of all.
struct Releases {
  device::StartHandle starts;
  std::uint64_t* nanoseconds;
  std::uint64_t* given_up; // counts
};
void launch_releases(const Releases& releases, hipStream_t stream);

// One thread puts `words` words to the peer and waits for as many of the peer's, `rounds` times;
// the words differ by round and sender. *nanoseconds gets the time of all.
struct Puts {
  device::TeamHandle team;
  std::uint32_t peer;
  std::uint64_t* source; // two buffers of words
  std::uint64_t* window; // the team's own, two buffers of words
  std::uint64_t words;
  int rounds;
  int long_every; // other rounds put one word only
  std::uint64_t* nanoseconds;
  std::uint64_t* wrong; // counts
  std::uint64_t* given_up;
};
void launch_puts(const Puts& puts, hipStream_t stream);

} // namespace ferry::test
