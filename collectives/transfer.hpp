// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "collectives/planner.hpp"

namespace ferry::core {

// How the bytes of one ordered pair of ranks move.
enum class Route : std::uint8_t {
  push, // the sender copies into the mapped receive buffer
  pull, // the receiver copies out of the send buffer, mapped or attached
  staged, // two copies through chunks in the sender's stage
};

// The route from one rank to another, computed alike by both. Pushing is the natural direction of a
// copy engine; a broadcast prefers pulling, since its readers then copy side by side.
[[nodiscard]] Route route_between(const PlanInput& input, int from, int to);

// Of what `to` pulls out of the buffer of a broadcast's root: the bytes, at the end, that the root
// pushes meanwhile. With a core for each rank it would be idle; each then has as much to copy.
[[nodiscard]] std::uint64_t pushed_share(const PlanInput& input, int to);

// Appends the steps of transfers to a schedule under construction.
class TransferBuilder {
 public:
  explicit TransferBuilder(const PlanInput& input);

  // This rank sends `bytes` bytes at `from` to `to` on rank `peer`; by pull it only waits, or
  // copies its share.
  void send(int peer, Place from, Place to, std::uint64_t bytes, int region);
  // This rank receives from `peer` what lies at `from` there into `to` here.
  void receive(int peer, Place from, Place to, std::uint64_t bytes, int region);
  // The same bytes to every other rank, as `block` of its receive buffer, in rotated order; those
  // who cannot reach the memory read one stage together.
  void send_to_all(Place from, int block, std::uint64_t bytes);
  // Both directions of a pair through stages, chunk by chunk, in the same memory.
  void exchange_in_place(int peer, Place block, std::uint64_t bytes);
  // Copy within this rank; after everything that others wait for.
  void copy_local(Place from, Place to, std::uint64_t bytes);

  // Close the plan: entry signals first, final waits last, and a line that tells what was chosen.
  [[nodiscard]] Schedule finish();

 private:
  void push(int peer, Place from, Place to, std::uint64_t bytes);
  void send_staged(const std::vector<int>& readers, Place from, std::uint64_t bytes, int region);
  std::vector<Step>& new_queue(int peer);
  Place stage_place(int rank, int region, std::uint64_t chunk) const;
  void note_stage(int region, std::uint64_t bytes);
  std::string summary() const;

  const PlanInput& input_;
  Schedule schedule_;
  std::vector<Step> local_;
  std::vector<std::uint64_t> moved_; // signals awaited from each peer at the end
  std::vector<bool> announce_; // peers that touch this rank's buffers
  int pushes_ = 0;
  int pulls_ = 0;
  int stages_ = 0;
  int shares_ = 0; // pulls whose end is pushed
};

[[nodiscard]] Step copy_step(Place to, Place from, std::uint64_t bytes);
[[nodiscard]] Step signal_step(SignalKind kind, int peer);
[[nodiscard]] Step await_step(SignalKind kind, int peer, std::uint64_t ordinal);

} // namespace ferry::core
