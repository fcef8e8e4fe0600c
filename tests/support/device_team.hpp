// SPDX-License-Identifier: MIT
#pragma once

// The ranks of a team in one process: windows between canaries, and a thread that consumes the
// rings of all pairs unless they are held back.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device/team.hpp"
#include "lib/engine/queue.hpp"
#include "tests/support/lanes.hpp"
#include "tests/support/patience.hpp"

namespace ferry::test {

struct TeamShape {
  std::uint32_t ranks = 2;
  std::size_t window_bytes = 4096; // of sources as well
  std::uint64_t threshold = 256;
  std::size_t ring_bytes = 4096;
  std::uint64_t max_copy_bytes = 1024;
  core::Producers producers = core::Producers::one;
};

class DeviceTeam {
 public:
  explicit DeviceTeam(const TeamShape& shape) : shape_(shape), ranks_(shape.ranks) {
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) add_rank(rank);
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) connect(rank);
    engine_ = std::jthread([this](const std::stop_token& stop) { consume(stop); });
  }
  DeviceTeam(const DeviceTeam&) = delete;
  DeviceTeam& operator=(const DeviceTeam&) = delete;
  ~DeviceTeam() { engine_ = {}; }

  [[nodiscard]] std::uint32_t ranks() const { return shape_.ranks; }
  [[nodiscard]] device::TeamHandle handle(std::uint32_t rank) {
    device::TeamHandle team;
    team.rank = rank;
    team.ranks = shape_.ranks;
    team.peers = ranks_[rank].peers.data();
    team.window_bytes = shape_.window_bytes;
    team.threshold = shape_.threshold;
    team.counts = ranks_[rank].counts.data();
    team.landed = &ranks_[rank].landed;
    return team;
  }
  [[nodiscard]] std::vector<device::PeerHandle>& peers(std::uint32_t rank) {
    return ranks_[rank].peers;
  }
  [[nodiscard]] char* window(std::uint32_t rank) { return ranks_[rank].window.data() + kCanary; }
  [[nodiscard]] char* source(std::uint32_t rank) { return ranks_[rank].source.data(); }
  [[nodiscard]] core::Queue& queue(std::uint32_t from, std::uint32_t to) {
    return *ranks_[from].queues[to];
  }
  // No packet from one rank to another is executed while its queue is held.
  void hold(std::uint32_t from, std::uint32_t to, bool held) { held_of(from, to) = held; }
  // What stands beside the windows is untouched, and no queue failed. Not while ranks run.
  [[nodiscard]] bool sound() const {
    for (const Rank& rank : ranks_) {
      const auto whole = [](char c) { return c == kGuard; };
      if (!std::all_of(rank.window.begin(), rank.window.begin() + kCanary, whole)) return false;
      if (!std::all_of(rank.window.end() - kCanary, rank.window.end(), whole)) return false;
    }
    return !failed_;
  }

 private:
  static constexpr std::ptrdiff_t kCanary = 64;
  static constexpr char kGuard = 0x5c;

  struct Rank {
    std::vector<char> window;
    std::vector<char> source;
    std::vector<std::uint64_t> signals;
    std::vector<std::uint64_t> counts;
    std::vector<std::uint64_t> settled;
    std::uint64_t landed = 0;
    std::vector<std::unique_ptr<core::Queue>> queues;
    std::unique_ptr<std::atomic<bool>[]> held;
    std::vector<device::PeerHandle> peers;
  };

  std::atomic<bool>& held_of(std::uint32_t from, std::uint32_t to) { return ranks_[from].held[to]; }

  void add_window(void* memory, std::size_t bytes) {
    core::Window w;
    w.base = reinterpret_cast<std::uint64_t>(memory);
    w.bytes = bytes;
    w.writable = true;
    w.name = "team";
    if (bytes != 0) windows_.add(w);
  }

  void add_rank(std::uint32_t number) {
    Rank& rank = ranks_[number];
    rank.window.assign(shape_.window_bytes + 2 * kCanary, kGuard);
    rank.source.resize(shape_.window_bytes);
    rank.signals.resize(device::signal_words(shape_.ranks));
    rank.counts.resize(device::count_words(shape_.ranks));
    rank.settled.resize(shape_.ranks);
    rank.held = std::make_unique<std::atomic<bool>[]>(shape_.ranks);
    add_window(rank.window.data(), rank.window.size());
    add_window(rank.source.data(), rank.source.size());
    add_window(rank.signals.data(), rank.signals.size() * sizeof(std::uint64_t));
    add_window(&rank.landed, sizeof rank.landed);
  }

  void connect(std::uint32_t number) {
    Rank& rank = ranks_[number];
    for (std::uint32_t peer = 0; peer < shape_.ranks; ++peer) {
      rank.queues.push_back(std::make_unique<core::Queue>(shape_.ring_bytes, shape_.producers));
      core::Queue& queue = *rank.queues.back();
      queue.set_windows(&windows_);
      queue.ring().max_copy_bytes = shape_.max_copy_bytes;
      rank.peers.push_back(
          {queue.ring(), &rank.settled[peer], window(peer), ranks_[peer].signals.data()});
    }
  }

  void consume(const std::stop_token& stop) {
    for (bool idle = true; !stop.stop_requested(); idle = true) {
      for (std::uint32_t from = 0; from < shape_.ranks; ++from) {
        for (std::uint32_t to = 0; to < shape_.ranks; ++to) idle &= !consume(from, to);
      }
      if (idle) std::this_thread::yield();
    }
  }

  bool consume(std::uint32_t from, std::uint32_t to) {
    if (held_of(from, to)) return false;
    core::Queue& next = queue(from, to);
    if (next.consume(8) == core::QueueState::failed) failed_ = true;
    return !next.drained() && !failed_;
  }

  TeamShape shape_;
  core::WindowSet windows_;
  std::vector<Rank> ranks_;
  std::atomic<bool> failed_ = false;
  std::jthread engine_;
};

// fn(handle, scope) on every lane of every rank; returns when all are done.
template <class Scope, class Fn>
void run_ranks(DeviceTeam& team, std::uint32_t lanes, const Fn& fn) {
  std::vector<std::jthread> ranks;
  for (std::uint32_t rank = 0; rank < team.ranks(); ++rank) {
    ranks.emplace_back([&, rank] {
      run_lanes<Scope>(lanes, [&](const Scope& scope) { fn(team.handle(rank), scope); });
    });
  }
}

} // namespace ferry::test
