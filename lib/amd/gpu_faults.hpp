// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "lib/amd/runtime.hpp"

namespace ferry::amd {

struct GpuFault {
  std::uint64_t number = 0; // how many this GPU has had; 0: none
  std::uint64_t address = 0; // 0: not known
};

// What the runtime reports about GPUs: memory that is not there, an engine that was reset. Without
// somebody who listens it ends the process. Ferry takes such a report upon itself as long as copies
// of its own are under way on that GPU, and leaves all others to the runtime.
class GpuFaults {
 public:
  explicit GpuFaults(const Runtime& runtime);
  GpuFaults(const GpuFaults&) = delete;
  GpuFaults& operator=(const GpuFaults&) = delete;
  ~GpuFaults() = default;

  // Of a GPU, by node: the last one. A number that does not change costs one load.
  [[nodiscard]] GpuFault last(int node) const;
  [[nodiscard]] std::uint64_t total() const;

  // Copies are under way while *released is ahead of *done; until forget().
  void watch(int node, const std::uint64_t* released, const std::uint64_t* done);
  void forget(const std::uint64_t* released);

 private:
  struct State;
  static int report(const hsa::Event* event, void* state);
  State* state_; // never freed: the runtime goes on to report
};

} // namespace ferry::amd
