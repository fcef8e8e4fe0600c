// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <vector>

#include "device/team.hpp"
#include "lib/exec/device_backend.hpp"
#include "lib/nvidia/memory.hpp"
#include "lib/nvidia/proxy.hpp"

namespace ferry::nvidia {

// The device API's team of ranks with GPUs: kernels post puts and signals to rings that a proxy
// drives. Windows are device memory of the program, alike in size on all ranks.
class ProxyTeam {
 public:
  // Collective. The window's memory is reachable by peers (see export_range()); `sources` is memory
  // of this rank that packets may read beside the window. Throws Failure.
  ProxyTeam(
      core::DeviceTeam& team, MappingCache& cache, Proxy& proxy, void* window,
      std::uint64_t window_bytes, const void* sources, std::uint64_t source_bytes,
      std::uint64_t process);
  ~ProxyTeam();
  ProxyTeam(const ProxyTeam&) = delete;
  ProxyTeam& operator=(const ProxyTeam&) = delete;

  // For kernels; by value.
  [[nodiscard]] const device::TeamHandle& handle() const { return handle_; }
  [[nodiscard]] core::Status error() const; // of the first ring that failed

 private:
  Proxy& proxy_;
  std::vector<std::unique_ptr<ProxyRing>> rings_;
  std::vector<std::shared_ptr<Mapping>> mappings_;
  DeviceBlock words_; // signals, counts, landed, settled, and the peers' handles
  Descriptor window_descriptor_;
  Descriptor words_descriptor_;
  device::TeamHandle handle_;
};

} // namespace ferry::nvidia
