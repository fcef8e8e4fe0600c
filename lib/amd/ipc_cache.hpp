// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/amd/runtime.hpp"

namespace ferry::amd {

// A process of the job, in a way that survives reused process ids.
using ProcessToken = std::array<std::uint64_t, 2>;
[[nodiscard]] const ProcessToken& own_token();

// An allocation as its process offers it to others. Sent as bytes.
struct SharedAllocation {
  ProcessToken process{};
  std::uint64_t base = 0; // in that process
  std::uint64_t bytes = 0;
  std::uint64_t id = 0;
  std::int32_t node = 0;
  std::int32_t vmem = 0; // of hipMemCreate: the handle names a descriptor
  hsa::IpcHandle handle;
  bool operator==(const SharedAllocation&) const = default;
};

// Memory of another rank in this process.
using Mapping = std::shared_ptr<std::byte>;

// What this process offers, and what it has opened. Each allocation is exported once and opened
// once for each pair of processes, however many plans use it, and is recognised by its identity:
// one that was freed and made anew at the same address is another one.
class IpcCache {
 public:
  explicit IpcCache(const Runtime& runtime) : runtime_(runtime) {}

  // Both throw Failure.
  [[nodiscard]] SharedAllocation offer(const Allocation& allocation);
  // Where it begins for this process and GPU. Memory of this very process is used as it is.
  [[nodiscard]] Mapping open(const SharedAllocation& allocation, int node);

  // All peers have opened what was offered, or none will.
  void withdraw(const SharedAllocation& allocation) noexcept;

  [[nodiscard]] std::size_t opened() const; // mappings that are held

 private:
  struct Entry {
    SharedAllocation allocation;
    int node = 0; // for which it is mapped
    Mapping mapping;
  };
  void evict(const SharedAllocation& fresh);

  const Runtime& runtime_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, SharedAllocation> offered_; // by base
  std::vector<Entry> opened_; // least recently used first
};

} // namespace ferry::amd
