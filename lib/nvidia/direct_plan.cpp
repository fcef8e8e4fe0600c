// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/nvidia/check.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "lib/nvidia/plan.hpp"

namespace ferry::nvidia {

namespace {

class DirectPlan final : public StreamPlan {
 public:
  DirectPlan(const Blocks& blocks, Wiring wiring, core::DeviceTeam& team)
      : StreamPlan(blocks, std::move(wiring), team) {
    const DeviceScope scope(wiring_.device);
    const bool in_place_exchange =
        blocks.desc.in_place && blocks.desc.operation == core::Operation::alltoall;
    if (in_place_exchange && !by_slots()) {
      scratch_ = DeviceBlock(blocks.received_bytes());
      for (std::size_t i = 0; i < wiring_.peers.size(); ++i) {
        wiring_.peers[i].source = scratch_.get() + i * blocks.bytes;
      }
    }
    fill_args();
    list_lanes();
    make_sides(lanes_.size());
  }

  [[nodiscard]] std::string explain() const override {
    std::string how;
    if (by_slots()) {
      how = fmt::format(
          "kernel: {} workgroups, data with flags through slots, in {}", args_.push_blocks,
          wiring_.row.path == Path::words ? "words" : "lines");
    } else if (wiring_.row.path == Path::push) {
      how = fmt::format("kernel: {} workgroups store into the peers' memory", args_.push_blocks);
    } else {
      how = fmt::format(
          "engines: {} copies a peer; a kernel moves {} % and what stays", wiring_.row.lanes,
          wiring_.row.kernel_percent);
    }
    const std::string note = wiring_.note.empty() ? "" : "; " + wiring_.note;
    return fmt::format("{}; {} bytes a block{}", how, blocks_.bytes, note);
  }

 protected:
  void enqueue(hipStream_t stream) override {
    if (scratch_.get() != nullptr) {
      check_runtime(
          hipMemcpyAsync(
              scratch_.get(), blocks_.desc.recv, blocks_.received_bytes(), hipMemcpyDefault,
              stream),
          "cudaMemcpyAsync");
    }
    if (wiring_.row.path == Path::words) return launch_words(args_, stream);
    if (wiring_.row.path == Path::lines) return launch_lines(args_, stream);
    if (wiring_.row.path == Path::push) return launch_push(args_, stream);
    enqueue_engines(stream);
  }

 private:
  struct Lane {
    char* to;
    const char* from;
    std::uint64_t bytes;
    const std::uint64_t* ready;
    std::uint64_t* arrived;
  };

  [[nodiscard]] bool by_slots() const {
    return wiring_.row.path == Path::words || wiring_.row.path == Path::lines;
  }
  [[nodiscard]] std::uint64_t kernel_bytes() const {
    if (wiring_.row.path != Path::engines) return blocks_.bytes;
    constexpr std::uint64_t kGrain = 64 * 1024;
    const auto percent = static_cast<std::uint64_t>(wiring_.row.kernel_percent);
    return blocks_.bytes / 100 * percent / kGrain * kGrain;
  }

  void fill_args() {
    const bool by_value = blocks_.ranks <= kInlinePeers;
    for (std::size_t i = 0; by_value && i < wiring_.peers.size(); ++i) {
      args_.peers[i] = wiring_.peers[i];
    }
    args_.table = by_value ? nullptr : wiring_.table.at<PeerView>(0);
    args_.rank = blocks_.rank;
    args_.ranks = blocks_.ranks;
    args_.bytes = kernel_bytes();
    args_.push_blocks = args_.bytes == 0 ? 0 : std::min(wiring_.row.push_blocks, kMaxBlocks);
    args_.epochs = wiring_.epochs;
    args_.started = wiring_.row.path == Path::engines ? wiring_.started : nullptr;
    args_.depth = wiring_.depth;
    args_.acknowledged = blocks_.desc.operation == core::Operation::broadcast;
    args_.patience = patience();
    if (!blocks_.keeps_own()) return;
    args_.own_blocks = by_slots() ? 0 : wiring_.row.own_blocks;
    args_.own_source = blocks_.source(blocks_.rank);
    args_.own_target = blocks_.result(blocks_.rank);
    args_.own_bytes = blocks_.bytes;
  }

  // Each lane of each peer is a copy of its own, on a stream of its own.
  void list_lanes() {
    if (wiring_.row.path != Path::engines) return;
    const std::uint64_t first = kernel_bytes();
    const auto lanes = static_cast<std::uint64_t>(wiring_.row.lanes);
    const std::uint64_t left = blocks_.bytes - first;
    const std::uint64_t each = (left / lanes + 4095) / 4096 * 4096;
    for (int i = 1; i < blocks_.ranks; ++i) {
      const auto peer = static_cast<std::size_t>((blocks_.rank + i) % blocks_.ranks);
      const PeerView& view = wiring_.peers[peer];
      if (view.result != nullptr) ready_.push_back(&wiring_.written[peer]->ready);
      for (std::uint64_t lane = 0, at = 0; lane < lanes && at < left; ++lane, at += each) {
        const std::uint64_t bytes = std::min(each, left - at);
        if (view.result != nullptr) arrived_.push_back(&wiring_.seen[peer]->arrived[lane]);
        if (view.source == nullptr) continue;
        lanes_.push_back(
            {view.target + first + at, view.source + first + at, bytes, &wiring_.seen[peer]->ready,
             &wiring_.written[peer]->arrived[lane]});
      }
    }
  }

  void enqueue_engines(hipStream_t stream) {
    stream_words_.advance(stream, ready_);
    fork(stream);
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const Lane& lane = lanes_[i];
      stream_words_.wait(side(i), {&lane.ready, 1}, {});
      check_runtime(
          hipMemcpyAsync(lane.to, lane.from, lane.bytes, hipMemcpyDefault, side(i)),
          "cudaMemcpyAsync");
      stream_words_.raise(side(i), {&lane.arrived, 1}, {});
    }
    launch_push(args_, stream);
    join(stream);
    stream_words_.wait(stream, arrived_, {});
  }

  ExchangeArgs args_;
  DeviceBlock scratch_;
  std::vector<std::uint64_t*> ready_;
  std::vector<const std::uint64_t*> arrived_;
  std::vector<Lane> lanes_;
};

} // namespace

std::unique_ptr<StreamPlan> make_direct_plan(
    const Blocks& blocks, Wiring wiring, core::DeviceTeam& team) {
  return std::make_unique<DirectPlan>(blocks, std::move(wiring), team);
}

} // namespace ferry::nvidia
