// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include "lib/schedule/schedule.hpp"

namespace ferry::core {

// What peers can do with the buffers of a rank. Mapped: they may access it by loads and stores.
// Plain: its blocks have no gaps, so one copy moves a block, also by cross-memory attach. What is
// not plain is not mapped either.
struct BufferFacts {
  bool send_mapped = false;
  bool recv_mapped = false;
  bool send_plain = true;
  bool recv_plain = true;
  bool operator==(const BufferFacts&) const = default;
};

// What a rank has to do with one other rank in an exchange of irregular blocks; both know it alike.
struct PairPlan {
  std::uint64_t send_bytes = 0;
  std::uint64_t recv_bytes = 0;
  BufferFacts mine;
  BufferFacts theirs;
  bool operator==(const PairPlan&) const = default;
};

// Sizes that bound a plan; from the table of the machine.
struct PlanLimits {
  std::uint64_t slot_bytes = 1024; // largest block that goes through a slot
  std::uint64_t direct_bytes = 1024; // the same where all receive buffers are known to be mapped
  std::uint64_t stage_bytes = 256 * 1024; // one stage chunk
  int stage_depth = 2; // chunks in flight for each stage
  std::uint64_t attach_from = 0; // smaller blocks of private memory go through stages
  std::uint64_t share_from = 0; // broadcasts from here on are copied by the root, too; 0: none
};

// Which part of an exchange is planned: small blocks go before anybody knows facts.
enum class Part : std::uint8_t { all, slots, transfers };

// All that a planner may look at; the same on every rank but for `rank`, `own_block` and `pairs`.
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
  std::span<const PairPlan> pairs; // of each rank: an exchange, in place of block_bytes and facts
  bool own_block = true; // copied from send to recv
  Part part = Part::all; // of an exchange
  PlanLimits limits;

  [[nodiscard]] bool irregular() const { return !pairs.empty(); }
  // What `rank` offers to `other`; one of the two is this rank.
  [[nodiscard]] const BufferFacts& facts_of(int who, int other) const {
    if (!irregular()) return facts[static_cast<std::size_t>(who)];
    const PairPlan& pair = pairs[static_cast<std::size_t>(who == rank ? other : who)];
    return who == rank ? pair.mine : pair.theirs;
  }
  // What goes from one rank to another; one of the two is this rank.
  [[nodiscard]] std::uint64_t bytes_between(int from, int to) const {
    if (!irregular()) return block_bytes;
    return from == rank ? pairs[static_cast<std::size_t>(to)].send_bytes
                        : pairs[static_cast<std::size_t>(from)].recv_bytes;
  }
};

// Pure: no MPI call, no memory, no clock. The steps of input.rank; every rank that computes the
// plan of another one gets what that one gets.
[[nodiscard]] Schedule plan_alltoall(const PlanInput& input);
[[nodiscard]] Schedule plan_allgather(const PlanInput& input);
[[nodiscard]] Schedule plan_broadcast(const PlanInput& input);
[[nodiscard]] Schedule plan_exchange(const PlanInput& input);
[[nodiscard]] Schedule plan_collective(const PlanInput& input);

// Does this block go through slots? Depends on what all ranks know alike, so they agree.
[[nodiscard]] bool fits_slots(const PlanInput& input);
// The same for the blocks of one pair of an exchange, which both sides decide alike.
[[nodiscard]] bool pair_fits_slots(const PairPlan& pair, const PlanLimits& limits);

// May the plan of this rank write through stage memory, whatever the other ranks' buffers are?
[[nodiscard]] bool may_stage(const PlanInput& input, const BufferFacts& mine);

// Stage memory of one rank that is enough for every plan of the operation.
[[nodiscard]] std::uint64_t stage_capacity(
    Operation operation, int ranks, const PlanLimits& limits);

} // namespace ferry::core
