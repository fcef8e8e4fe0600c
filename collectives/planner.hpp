// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include "lib/schedule/schedule.hpp"

namespace ferry::core {

// Which buffers of a rank its peers can map.
struct BufferFacts {
  bool send_mapped = false;
  bool recv_mapped = false;
  bool operator==(const BufferFacts&) const = default;
};

// Sizes that bound a plan; from the table of the machine.
struct PlanLimits {
  std::uint64_t slot_bytes = 1024; // largest block that goes through a slot
  std::uint64_t direct_bytes = 1024; // the same where all receive buffers are known to be mapped
  std::uint64_t stage_bytes = 256 * 1024; // one stage chunk
  int stage_depth = 2; // chunks in flight for each stage
  std::uint64_t attach_from = 0; // smaller blocks of private memory go through stages
};

// All that a planner may look at; the same on every rank but for `rank`.
struct PlanInput {
  Operation operation = Operation::alltoall;
  int rank = 0;
  int ranks = 1;
  int root = 0;
  bool in_place = false;
  bool handshake = true; // false: the exchange of addresses has told already that all have entered
  bool attach = false; // memory that is not mapped can be read by cross-memory attach
  std::uint64_t block_bytes = 0;
  std::span<const BufferFacts> facts; // of each rank; empty as long as nobody has told them
  PlanLimits limits;
};

// Pure: no MPI call, no memory, no clock. The steps of input.rank; every rank that computes the
// plan of another one gets what that one gets.
[[nodiscard]] Schedule plan_alltoall(const PlanInput& input);
[[nodiscard]] Schedule plan_allgather(const PlanInput& input);
[[nodiscard]] Schedule plan_broadcast(const PlanInput& input);
[[nodiscard]] Schedule plan_collective(const PlanInput& input);

// Does this block go through slots? Depends on what all ranks know alike, so they agree.
[[nodiscard]] bool fits_slots(const PlanInput& input);

// May the plan of this rank write through stage memory, whatever the other ranks' buffers are?
[[nodiscard]] bool may_stage(const PlanInput& input, const BufferFacts& mine);

// Stage memory of one rank that is enough for every plan of the operation.
[[nodiscard]] std::uint64_t stage_capacity(
    Operation operation, int ranks, const PlanLimits& limits);

} // namespace ferry::core
