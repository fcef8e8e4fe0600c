// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "lib/amd/hsa_api.hpp"

namespace ferry::amd {

// Memory that a program maps by itself, between processes: handles of hipMalloc do not exist for
// it, so its owner exports a descriptor, and peers fetch that from the owner's process.
class VmemShares {
 public:
  explicit VmemShares(const VmemApi& api) : api_(api) {}
  VmemShares(const VmemShares&) = delete;
  VmemShares& operator=(const VmemShares&) = delete;
  ~VmemShares();

  // All throw Failure. `base` is where a mapping begins. The handle tells process and descriptor,
  // is another one each time, and holds until withdraw(): the descriptor keeps the memory, so it
  // goes when all peers have it.
  [[nodiscard]] hsa::IpcHandle share(std::byte* base);
  // Maps what a peer has shared, for one GPU.
  [[nodiscard]] std::byte* open(const hsa::IpcHandle& handle, std::size_t bytes, hsa::Agent agent);
  void allow(void* base, std::size_t bytes, hsa::Agent agent) const;

  // False when open() has not made this mapping.
  bool close(std::byte* base) noexcept;
  void withdraw(const hsa::IpcHandle& handle) noexcept;

 private:
  struct Import {
    hsa::VmemHandle handle;
    std::size_t bytes = 0;
  };
  void require() const;

  VmemApi api_;
  std::mutex mutex_;
  std::uint64_t shared_ = 0; // ever
  std::map<std::uint64_t, int> exports_; // descriptors, by number of the share
  std::map<const std::byte*, Import> imports_;
};

} // namespace ferry::amd
