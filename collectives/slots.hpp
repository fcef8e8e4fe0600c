// SPDX-License-Identifier: MIT
#pragma once

#include "collectives/planner.hpp"

namespace ferry::core {

// Builds a plan whose blocks ride with their flags through slots in the writer's memory: slot i for
// rank i, or one slot that everyone reads. Puts come before gets, so a rank never waits before it
// has given what others wait for.
class SlotBuilder {
 public:
  explicit SlotBuilder(const PlanInput& input);
  // This rank's block at `from` for `reader`, or for kEveryone.
  void put(int reader, Place from, std::uint64_t bytes);
  // The block that `writer` put for `reader` (this rank or kEveryone).
  void get(int writer, int reader, Place to, std::uint64_t bytes);
  void copy_local(Place from, Place to, std::uint64_t bytes);
  [[nodiscard]] Schedule finish();

 private:
  Place slot_of(int writer, int reader) const;

  const PlanInput& input_;
  Schedule schedule_;
};

} // namespace ferry::core
