// SPDX-License-Identifier: MIT
#include "lib/nvidia/proxy_team.hpp"

#include "lib/base/error.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"

namespace ferry::nvidia {

namespace {

constexpr std::size_t kRingBytes = 16 * 1024;

struct Reachable {
  Exported window;
  Exported words;
};

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
    core::DeviceTeam& team, MappingCache& cache, Proxy& proxy, void* window,
    std::uint64_t window_bytes, const void* sources, std::uint64_t source_bytes,
    std::uint64_t process)
    : proxy_(proxy) {
  const auto ranks = static_cast<std::uint64_t>(team.ranks());
  const int device = device_of(window);
  const DeviceScope scope(device);
  // signals, counts, landed, one settled word a peer, handles
  const std::uint64_t signals = device::signal_words(ranks) * 8;
  const std::uint64_t counts = signals + device::count_words(ranks) * 8;
  const std::uint64_t settled = counts + 64;
  const std::uint64_t handles = settled + ranks * 64;
  const std::uint64_t all = handles + ranks * sizeof(device::PeerHandle);
  words_ = DeviceBlock(all);
  Reachable mine{
      export_range(window, window_bytes, process, window_descriptor_),
      export_range(words_.get(), all, process, words_descriptor_)};
  std::vector<Reachable> reachable(ranks);
  team.allgather(&mine, sizeof mine, reachable.data());
  std::vector<device::PeerHandle> peers(ranks);
  for (std::uint64_t i = 0; i < ranks; ++i) {
    device::PeerHandle& peer = peers[i];
    const bool self = static_cast<int>(i) == team.rank();
    peer.settled = words_.at<std::uint64_t>(settled + i * 64);
    peer.window = static_cast<char*>(window);
    peer.signals = words_.at<std::uint64_t>(0);
    if (self) continue;
    mappings_.push_back(cache.open(reachable[i].window, device, process));
    peer.window = mappings_.back()->base() + reachable[i].window.offset;
    mappings_.push_back(cache.open(reachable[i].words, device, process));
    char* const there = mappings_.back()->base() + reachable[i].words.offset;
    peer.signals = reinterpret_cast<std::uint64_t*>(there);
    core::WindowSet set;
    set.add(window_of(peer.window, window_bytes, true, "peer"));
    set.add(window_of(there, signals, true, "peer's signals"));
    set.add(window_of(window, window_bytes, true, "own"));
    set.add(window_of(words_.get(), settled, true, "own words"));
    if (source_bytes != 0) set.add(window_of(sources, source_bytes, true, "sources"));
    rings_.push_back(std::make_unique<ProxyRing>(kRingBytes, std::move(set)));
    peer.ring = rings_.back()->handle();
    proxy_.add(*rings_.back());
  }
  check_runtime(
      hipMemcpy(words_.at<char>(handles), peers.data(), ranks * sizeof peers[0], hipMemcpyDefault),
      "cudaMemcpy");
  handle_.rank = static_cast<std::uint32_t>(team.rank());
  handle_.ranks = static_cast<std::uint32_t>(ranks);
  handle_.peers = words_.at<device::PeerHandle>(handles);
  handle_.window_bytes = window_bytes;
  handle_.threshold = 0; // a signal has one writer only when all of them go through the ring
  handle_.counts = words_.at<std::uint64_t>(signals);
  handle_.landed = words_.at<std::uint64_t>(counts);
  team.allgather(&mine, 1, reachable.data()); // nobody's descriptors are closed before all opened
}

ProxyTeam::~ProxyTeam() {
  for (const auto& ring : rings_) proxy_.remove(*ring);
}

core::Status ProxyTeam::error() const {
  for (const auto& ring : rings_) {
    if (core::Status status = ring->error(); !status.ok()) return status;
  }
  return {};
}

} // namespace ferry::nvidia
