// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lib/amd/hsa_api.hpp"
#include "lib/amd/topology.hpp"
#include "lib/amd/vmem.hpp"

namespace ferry::amd {

// The allocation that holds a pointer. `id` tells it from an earlier one at the same address; 0:
// nobody can tell, and nothing about it may be kept.
struct Allocation {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  int node = 0;
  std::uint64_t id = 0;
  bool vmem = false; // of hipMemCreate
};

enum class MemoryKind { device, uncached };

// Memory of GPUs: found, shared between processes, copied. Agents of the runtime are known by the
// node number of the kernel, never by their order.
class Runtime {
 public:
  // Throws Failure when the runtime has no GPU or does not start.
  Runtime(const HsaApi& hsa, const HipApi& hip);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  [[nodiscard]] const HsaApi& api() const { return hsa_; }
  // Does the runtime show this GPU to the process?
  [[nodiscard]] bool sees(int node) const { return agents_.contains(node); }
  [[nodiscard]] hsa::Agent agent(int node) const;
  [[nodiscard]] const std::map<std::uint64_t, int>& nodes() const { return nodes_; } // by agent
  [[nodiscard]] std::size_t gpus() const { return agents_.size(); }

  // What a function of the runtime says about copies of one GPU to another; 0: nothing.
  using EngineQuestion = hsa::Status (*)(hsa::Agent, hsa::Agent, std::uint32_t*);
  [[nodiscard]] std::uint32_t engines(EngineQuestion question, int from, int to) const;

  [[nodiscard]] bool owns(const void* pointer) const noexcept;
  [[nodiscard]] std::optional<Allocation> find(const void* pointer) const noexcept;

  // All throw Failure.
  [[nodiscard]] hsa::IpcHandle share(const Allocation& allocation) const;
  [[nodiscard]] std::byte* open(
      const hsa::IpcHandle& handle, std::size_t bytes, int node, bool vmem) const;
  void close(std::byte* base) const noexcept;
  // Of memory of hipMemCreate, when all peers have opened it.
  void withdraw(const hsa::IpcHandle& handle) const noexcept { vmem_.withdraw(handle); }
  // Lets a GPU reach memory of this process that lies on another.
  void allow(std::byte* base, std::size_t bytes, int node, bool vmem) const;
  // Zeroed.
  [[nodiscard]] std::byte* allocate(int node, std::size_t bytes, MemoryKind kind) const;
  void release(std::byte* base) const noexcept;
  void copy(void* to, const void* from, std::size_t bytes) const;

  // Is work that is put there now recorded for later, or may it be?
  [[nodiscard]] bool captures(void* stream) const;
  // Behind what is in the stream already. Throws Failure without HIP.
  void call_on_stream(void* stream, void (*function)(void*), void* data) const;

 private:
  struct Device {
    hsa::Agent agent;
    hsa::Pool coarse;
    hsa::Pool fine; // finest there is
    std::uint32_t fine_flags = 0;
  };

  void add_agent(hsa::Agent agent);
  void add_pool(Device& device, hsa::Pool pool) const;
  [[nodiscard]] std::optional<hsa::PointerInfo> info(const void* pointer) const noexcept;
  [[nodiscard]] const Device& device(int node) const;

  [[nodiscard]] bool find_range(Allocation& allocation, const void* pointer) const noexcept;

  HsaApi hsa_;
  HipApi hip_;
  mutable VmemShares vmem_;
  std::map<int, Device> agents_; // GPUs, by node
  std::map<std::uint64_t, int> nodes_; // by handle of the agent
};

} // namespace ferry::amd
