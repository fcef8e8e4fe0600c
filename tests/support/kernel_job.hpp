// SPDX-License-Identifier: MIT
#pragma once

// The ranks of an exchange by kernels, in one process: buffers between canaries, the words of each
// pair, and workgroups and lanes that are threads. A rank's starts follow each other as on a
// stream; ranks run free of each other.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "device/low_latency.hpp"
#include "device/wide_exchange.hpp"
#include "tests/support/device_team.hpp"
#include "tests/support/lanes.hpp"

namespace ferry::test {

// How many bytes `from` sends to `to`.
using PairBytes = std::function<std::uint64_t(std::uint32_t from, std::uint32_t to)>;

struct KernelJobShape {
  std::uint32_t ranks = 2;
  PairBytes bytes;
  std::uint64_t parts = 1; // of a wide exchange
  std::uint64_t shift_send = 0; // of blocks, from a boundary of 16 bytes
  std::uint64_t shift_receive = 0;
};

class KernelJob {
 public:
  explicit KernelJob(const KernelJobShape& shape) : shape_(shape), ranks_(shape.ranks) {
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) add_blocks(rank);
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) connect(rank);
  }

  [[nodiscard]] std::uint32_t ranks() const { return shape_.ranks; }
  [[nodiscard]] const device::KernelReport& report(std::uint32_t rank) const {
    return ranks_[rank].report;
  }
  [[nodiscard]] std::uint64_t epochs(std::uint32_t rank) const {
    return ranks_[rank].progress.epoch;
  }
  [[nodiscard]] device::LowLatencyArgs low_latency(std::uint32_t rank) {
    device::LowLatencyArgs args;
    args.peers = ranks_[rank].low_latency.data();
    args.peer_count = ranks_[rank].low_latency.size();
    args.half_words = half_words();
    finish(args, rank);
    return args;
  }
  [[nodiscard]] device::WideArgs wide(std::uint32_t rank) {
    device::WideArgs args;
    args.peers = ranks_[rank].wide.data();
    args.peer_count = ranks_[rank].wide.size();
    args.parts = shape_.parts;
    finish(args, rank);
    return args;
  }

  // New data for a start, and what was received before is overwritten.
  void fill(std::uint32_t rank, std::uint64_t epoch) {
    for (std::uint32_t peer = 0; peer < ranks(); ++peer) {
      std::vector<char>& out = ranks_[rank].out[peer];
      for (std::uint64_t i = 0; i < shape_.bytes(rank, peer); ++i) {
        out[shape_.shift_send + kCanary + i] = datum(epoch, rank, peer, i);
      }
      std::vector<char>& in = ranks_[rank].in[peer];
      std::fill(in.begin(), in.end(), poison(epoch));
    }
  }
  // Every byte is there, and none beside it was written.
  [[nodiscard]] bool right(std::uint32_t rank, std::uint64_t epoch) const {
    bool right = true;
    for (std::uint32_t peer = 0; peer < ranks(); ++peer) {
      const std::vector<char>& in = ranks_[rank].in[peer];
      const std::uint64_t begin = shape_.shift_receive + kCanary;
      const std::uint64_t bytes = shape_.bytes(peer, rank);
      for (std::uint64_t i = 0; i < in.size(); ++i) {
        const bool inside = i >= begin && i < begin + bytes;
        right &= in[i] == (inside ? datum(epoch, peer, rank, i - begin) : poison(epoch));
      }
    }
    return right;
  }

 private:
  static constexpr std::uint64_t kCanary = 32;

  struct Rank {
    std::vector<std::vector<char>> out; // by peer
    std::vector<std::vector<char>> in;
    std::vector<std::vector<std::uint64_t>> words; // by sender: two halves
    std::vector<std::vector<std::uint64_t>> ready;
    std::vector<std::vector<std::uint64_t>> arrived;
    std::vector<device::LowLatencyPeer> low_latency;
    std::vector<device::WidePeer> wide;
    device::KernelProgress progress;
    device::KernelReport report;
  };

  static char datum(std::uint64_t epoch, std::uint64_t from, std::uint64_t to, std::uint64_t i) {
    return static_cast<char>(epoch * 31 + from * 7 + to * 3 + i * 5 + (i >> 8));
  }
  static char poison(std::uint64_t epoch) { return static_cast<char>(0xa5 ^ (epoch * 17)); }

  [[nodiscard]] std::uint64_t half_words() const {
    std::uint64_t most = 1;
    for (std::uint32_t from = 0; from < ranks(); ++from) {
      for (std::uint32_t to = 0; to < ranks(); ++to) {
        const std::uint64_t words =
            device::low_latency_words(shape_.bytes(from, to), shape_.bytes(to, from));
        most = std::max(most, words);
      }
    }
    return most;
  }

  void add_blocks(std::uint32_t number) {
    Rank& rank = ranks_[number];
    for (std::uint32_t peer = 0; peer < ranks(); ++peer) {
      rank.out.emplace_back(shape_.bytes(number, peer) + shape_.shift_send + 2 * kCanary);
      rank.in.emplace_back(shape_.bytes(peer, number) + shape_.shift_receive + 2 * kCanary);
      rank.words.emplace_back(2 * half_words());
      rank.ready.emplace_back(shape_.parts);
      rank.arrived.emplace_back(shape_.parts);
    }
  }

  const char* out(std::uint32_t rank, std::uint32_t peer) const {
    return ranks_[rank].out[peer].data() + kCanary + shape_.shift_send;
  }
  char* in(std::uint32_t rank, std::uint32_t peer) {
    return ranks_[rank].in[peer].data() + kCanary + shape_.shift_receive;
  }

  void connect(std::uint32_t number) {
    Rank& rank = ranks_[number];
    for (std::uint32_t next = 1; next < ranks(); ++next) {
      const std::uint32_t peer = (number + next) % ranks();
      Rank& there = ranks_[peer];
      const std::uint64_t send = shape_.bytes(number, peer);
      const std::uint64_t receive = shape_.bytes(peer, number);
      rank.low_latency.push_back(
          {out(number, peer), send, in(number, peer), receive, there.words[number].data(),
           rank.words[peer].data()});
      rank.wide.push_back(
          {out(number, peer), send, in(peer, number), receive, there.ready[number].data(),
           rank.ready[peer].data(), there.arrived[number].data(), rank.arrived[peer].data()});
    }
  }

  template <class Args>
  void finish(Args& args, std::uint32_t rank) {
    args.own = {in(rank, rank), out(rank, rank), shape_.bytes(rank, rank)};
    args.progress = &ranks_[rank].progress;
    args.report = &ranks_[rank].report;
  }

  KernelJobShape shape_;
  std::vector<Rank> ranks_;
};

// kernel(place, scope) on all lanes of all workgroups; returns when all have ended, as a kernel.
template <class Scope, class Kernel>
void launch(std::uint32_t blocks, std::uint32_t lanes, const Kernel& kernel) {
  std::vector<std::jthread> workgroups;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    workgroups.emplace_back([&, block] {
      run_lanes<Scope>(lanes, [&](const Scope& scope) {
        kernel(device::Place{block, blocks}, scope);
      });
    });
  }
}

// fn(rank) for all ranks at once.
template <class Fn>
void each_rank(const KernelJob& job, const Fn& fn) {
  std::vector<std::jthread> ranks;
  for (std::uint32_t rank = 0; rank < job.ranks(); ++rank)
    ranks.emplace_back([&, rank] { fn(rank); });
}

} // namespace ferry::test
