// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/team.hpp"
#include "lib/exec/device_backend.hpp"
#include "lib/nvidia/agreement.hpp"
#include "lib/nvidia/memory.hpp"
#include "lib/nvidia/owners.hpp"
#include "lib/nvidia/proxy.hpp"

namespace ferry::nvidia {

// The device API's team of ranks with GPUs: kernels post puts and signals to rings that a proxy
// drives; short ones are stored straight into the peer's memory while nothing is on its way to it.
class ProxyTeam final : public core::KernelTeam {
 public:
  // Collective. The proxy is that of the window's device, and outlives this. Throws Failure alike
  // on all ranks.
  ProxyTeam(
      core::DeviceTeam& team, MappingCache& cache, Proxy& proxy, const core::TeamMemory& memory);
  ~ProxyTeam() override;

  [[nodiscard]] const device::TeamHandle& handle() const override { return handle_; }
  [[nodiscard]] core::Status error() const override;

 private:
  // What a rank tells of its memory. Sent as bytes.
  struct Offer {
    Exported window;
    Exported words;
    Trouble trouble;
  };

  void provide(const core::TeamMemory& memory, Offer& offer);
  void reach_peers(const core::TeamMemory& memory, MappingCache& cache);
  void add_ring(const core::TeamMemory& memory, device::PeerHandle& peer);
  void fill_handle(const core::TeamMemory& memory);
  // Of the words: signals, counts, landed, sums, handles.
  [[nodiscard]] std::uint64_t signal_bytes() const { return device::signal_words(ranks_) * 8; }
  [[nodiscard]] std::uint64_t landed_at() const {
    return signal_bytes() + device::count_words(ranks_) * 8;
  }
  [[nodiscard]] std::uint64_t sums_at() const { return landed_at() + 64; }
  [[nodiscard]] std::uint64_t peers_at() const { return sums_at() + device::sum_words(ranks_) * 8; }
  [[nodiscard]] std::uint64_t all_bytes() const {
    return peers_at() + ranks_ * sizeof(device::PeerHandle);
  }

  Proxy& proxy_;
  const std::uint64_t rank_;
  const std::uint64_t ranks_;
  int device_ = -1;
  std::vector<Offer> offers_;
  std::vector<device::PeerHandle> peers_;
  Descriptor window_descriptor_;
  Descriptor words_descriptor_;
  std::vector<std::shared_ptr<Mapping>> mappings_;
  DeviceBlock words_;
  std::vector<std::unique_ptr<ProxyRing>> rings_;
  std::size_t driven_ = 0; // rings that the proxy knows
  device::TeamHandle handle_;
};

} // namespace ferry::nvidia
