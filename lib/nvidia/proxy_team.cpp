// SPDX-License-Identifier: MIT
#include "lib/nvidia/proxy_team.hpp"

#include <utility>

#include "device/threshold.hpp"
#include "lib/base/error.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"

namespace ferry::nvidia {

namespace {

constexpr std::size_t kRingBytes = 16 * 1024;

core::Window window_of(const void* base, std::uint64_t bytes, bool writable, const char* name) {
  core::Window window;
  window.base = reinterpret_cast<std::uint64_t>(base);
  window.bytes = bytes;
  window.writable = writable;
  window.name = name;
  return window;
}

} // namespace

ProxyTeam::ProxyTeam(
    core::DeviceTeam& team, MappingCache& cache, Proxy& proxy, const core::TeamMemory& memory)
    : proxy_(proxy),
      rank_(static_cast<std::uint64_t>(team.rank())),
      ranks_(static_cast<std::uint64_t>(team.ranks())),
      offers_(ranks_),
      peers_(ranks_) {
  Offer mine;
  mine.trouble = attempt([&] { provide(memory, mine); });
  team.allgather(&mine, sizeof mine, offers_.data());
  std::vector<Trouble> troubles;
  for (const Offer& offer : offers_) troubles.push_back(offer.trouble);
  agree(troubles);
  // Nobody's descriptors are closed before all have answered.
  const Trouble reached = attempt([&] { reach_peers(memory, cache); });
  team.allgather(&reached, sizeof reached, troubles.data());
  agree(troubles);
  fill_handle(memory);
  for (const auto& ring : rings_) {
    proxy_.add(*ring);
    ++driven_;
  }
}

void ProxyTeam::provide(const core::TeamMemory& memory, Offer& offer) {
  device_ = device_of(memory.window);
  const DeviceScope scope(device_);
  if (memory.source_bytes != 0) check_range(memory.source, memory.source_bytes);
  words_ = DeviceBlock(all_bytes());
  offer.window =
      export_range(memory.window, memory.window_bytes, process_number(), window_descriptor_);
  offer.words = export_range(words_.get(), all_bytes(), process_number(), words_descriptor_);
}

void ProxyTeam::reach_peers(const core::TeamMemory& memory, MappingCache& cache) {
  const DeviceScope scope(device_);
  for (std::uint64_t i = 0; i < ranks_; ++i) {
    device::PeerHandle& peer = peers_[i];
    peer.window = static_cast<char*>(memory.window);
    peer.signals = words_.at<std::uint64_t>(0);
    if (i == rank_) continue;
    const Offer& theirs = offers_[i];
    mappings_.push_back(cache.open(theirs.window, device_, process_number()));
    peer.window = mappings_.back()->base() + theirs.window.offset;
    mappings_.push_back(cache.open(theirs.words, device_, process_number()));
    char* const words = mappings_.back()->base() + theirs.words.offset;
    peer.signals = reinterpret_cast<std::uint64_t*>(words);
    add_ring(memory, peer);
  }
  check_runtime(
      hipMemcpy(
          words_.at<char>(peers_at()), peers_.data(), ranks_ * sizeof peers_[0], hipMemcpyDefault),
      "cudaMemcpy");
}

void ProxyTeam::add_ring(const core::TeamMemory& memory, device::PeerHandle& peer) {
  core::WindowSet set;
  set.add(window_of(peer.window, memory.window_bytes, true, "peer"));
  set.add(window_of(peer.signals, signal_bytes(), true, "peer's signals"));
  set.add(window_of(memory.window, memory.window_bytes, true, "own"));
  set.add(window_of(words_.get(), sums_at(), true, "own words"));
  if (memory.source_bytes != 0) {
    set.add(window_of(memory.source, memory.source_bytes, true, "sources"));
  }
  rings_.push_back(std::make_unique<ProxyRing>(kRingBytes, std::move(set)));
  peer.ring = rings_.back()->handle();
  peer.settled = peer.ring.rptr; // the stream raises it when all below has taken effect
}

void ProxyTeam::fill_handle(const core::TeamMemory& memory) {
  handle_.rank = static_cast<std::uint32_t>(rank_);
  handle_.ranks = static_cast<std::uint32_t>(ranks_);
  handle_.peers = words_.at<device::PeerHandle>(peers_at());
  handle_.window_bytes = memory.window_bytes;
  handle_.threshold = device::kProxyThreshold.bytes;
  handle_.sums = words_.at<std::uint64_t>(sums_at()); // the proxy stores what ATOMICs add up to
  handle_.counts = words_.at<std::uint64_t>(signal_bytes());
  handle_.landed = words_.at<std::uint64_t>(landed_at());
}

ProxyTeam::~ProxyTeam() {
  for (std::size_t i = 0; i < driven_; ++i) proxy_.remove(*rings_[i]);
}

core::Status ProxyTeam::error() const {
  for (const auto& ring : rings_) {
    if (core::Status status = ring->error(); !status.ok()) return status;
  }
  return {};
}

} // namespace ferry::nvidia
