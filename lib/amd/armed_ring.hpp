// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "lib/amd/program.hpp"
#include "lib/amd/queue_pool.hpp"

namespace ferry::amd {

// One ring of a plan. The packets of an epoch take a lap: filled with NOPs to a power of two, so
// that no packet meets the end of the ring. Epochs may be programmed ahead of their start: they
// wait for the trigger.
class ArmedRing {
 public:
  // Words count from `first`.
  ArmedRing(
      QueueLease lease, RingProgram program, device::Generation generation, std::uint64_t first);

  // Of a ring that holds a few epochs: an engine may tell late how far it has come.
  [[nodiscard]] static std::size_t ring_bytes(const RingProgram& program);

  // For how many epochs more is there room?
  [[nodiscard]] std::uint64_t room() const;
  // Hands the packets of this epoch to the engine, behind those of the epoch before it.
  void arm(std::uint64_t epoch);

  // Does a packet that the engine has not left behind copy to or from the page of this address?
  [[nodiscard]] bool copies_at(std::uint64_t address) const;
  // The packet at which its engine stands, for people; empty when there is none.
  [[nodiscard]] std::string next_packet() const;

  [[nodiscard]] SdmaQueue& queue() const { return *lease_; }
  [[nodiscard]] int peer() const { return program_.peer; }

 private:
  QueueLease lease_;
  RingProgram program_;
  device::Generation generation_;
  std::uint64_t first_;
  std::uint64_t lap_;
  std::uint64_t next_; // where the next epoch goes
};

} // namespace ferry::amd
