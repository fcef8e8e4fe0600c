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
    if (blocks_.trades_places() && !by_slots()) {
      leaving_ = blocks_.sending();
      scratch_ = DeviceBlock(leaving_.bytes);
      for (PeerView& view : wiring_.peers) {
        if (view.source != nullptr) view.source = scratch_.get() + (view.source - leaving_.at);
      }
    }
    fill_args();
    list_lanes();
    make_sides(lane_sides() + (has_own_side() ? 1 : 0));
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
      const char* own = args_.own_source == nullptr ? "; nothing stays"
                        : args_.own_blocks != 0     ? " and what stays"
                                                    : "; the runtime copies what stays";
      how = fmt::format(
          "engines: {} copies a peer; a kernel moves {} %{}", wiring_.row.lanes,
          wiring_.row.kernel_percent, own);
    }
    const std::string note = wiring_.note.empty() ? "" : "; " + wiring_.note;
    return fmt::format("{}; {} bytes a block{}", how, wiring_.largest, note);
  }

 protected:
  void enqueue(hipStream_t stream) override {
    if (scratch_.get() != nullptr) {
      check_runtime(
          hipMemcpyAsync(scratch_.get(), leaving_.at, leaving_.bytes, hipMemcpyDefault, stream),
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
  void fill_args() {
    const bool by_value = blocks_.ranks <= kInlinePeers;
    for (std::size_t i = 0; by_value && i < wiring_.peers.size(); ++i) {
      args_.peers[i] = wiring_.peers[i];
    }
    args_.table = by_value ? nullptr : wiring_.table.at<PeerView>(0);
    args_.rank = blocks_.rank;
    args_.ranks = blocks_.ranks;
    args_.push_blocks =
        wiring_.kernel_bytes == 0 ? 0 : std::min(wiring_.row.push_blocks, kMaxBlocks);
    args_.epochs = wiring_.epochs;
    args_.started = wiring_.row.path == Path::engines ? wiring_.started : nullptr;
    args_.depth = wiring_.depth;
    args_.slot_bytes = wiring_.slot_bytes;
    args_.acknowledged = blocks_.one_sided();
    args_.patience = patience();
    if (!blocks_.keeps_own()) return;
    args_.own_blocks = by_slots() ? 0 : wiring_.row.own_blocks;
    args_.own_source = blocks_.source(blocks_.rank).at;
    args_.own_target = blocks_.result(blocks_.rank).at;
    args_.own_bytes = blocks_.source(blocks_.rank).bytes;
  }

  // What the kernel leaves of a block, cut alike on both sides.
  struct Cut {
    std::uint64_t first;
    std::uint64_t each;
    std::uint64_t end;
  };
  [[nodiscard]] Cut cut(std::uint64_t bytes) const {
    const std::uint64_t first = std::min(bytes, wiring_.kernel_bytes);
    const auto lanes = static_cast<std::uint64_t>(wiring_.row.lanes);
    constexpr std::uint64_t kGrain = 4096;
    return {first, ((bytes - first) / lanes + kGrain) / kGrain * kGrain, bytes};
  }

  // Each lane of each peer is a copy of its own, on a stream of its own.
  void list_lanes() {
    if (wiring_.row.path != Path::engines) return;
    for (int i = 1; i < blocks_.ranks; ++i) {
      const int peer = (blocks_.rank + i) % blocks_.ranks;
      const auto p = static_cast<std::size_t>(peer);
      const Piece in = blocks_.result(peer);
      if (in.bytes != 0) ready_.push_back(&wiring_.written[p]->ready);
      const Cut coming = cut(in.bytes);
      std::size_t lane = 0;
      for (std::uint64_t at = coming.first; at < coming.end; at += coming.each) {
        arrived_.push_back(&wiring_.seen[p]->arrived[lane++]);
      }
      const Piece out = blocks_.source(peer);
      const char* const from =
          scratch_.get() != nullptr ? scratch_.get() + (out.at - leaving_.at) : out.at;
      const Cut going = cut(out.bytes);
      lane = 0;
      for (std::uint64_t at = going.first; at < going.end; at += going.each) {
        lanes_.push_back(
            {wiring_.peers[p].target + at, from + at, std::min(going.each, going.end - at),
             &wiring_.seen[p]->ready, &wiring_.written[p]->arrived[lane++]});
      }
    }
  }

  // The first lane goes on the plan's own stream: two waits for events less.
  [[nodiscard]] std::size_t lane_sides() const { return lanes_.empty() ? 0 : lanes_.size() - 1; }
  [[nodiscard]] bool has_own_side() const {
    const bool kernel = args_.own_blocks + args_.push_blocks != 0;
    return wiring_.row.path == Path::engines && (kernel || args_.own_source != nullptr);
  }

  void enqueue_engines(hipStream_t stream) {
    stream_words_.advance(stream, ready_);
    fork(stream);
    for (std::size_t i = 1; i < lanes_.size(); ++i) enqueue_lane(lanes_[i], side(i - 1));
    if (has_own_side()) move_own(side(lane_sides()));
    if (!lanes_.empty()) enqueue_lane(lanes_.front(), stream);
    join(stream);
    stream_words_.wait(stream, arrived_, {});
  }

  void enqueue_lane(const Lane& lane, hipStream_t stream) {
    stream_words_.wait(stream, {&lane.ready, 1}, {});
    check_runtime(
        hipMemcpyAsync(lane.to, lane.from, lane.bytes, hipMemcpyDefault, stream),
        "cudaMemcpyAsync");
    stream_words_.raise(stream, {&lane.arrived, 1}, {});
  }

  // By a kernel, on a stream of high priority: the kernels of the program let its workgroups in
  // first, but only when one of theirs ends. The runtime's copy within a GPU is a kernel as well,
  // whatever it is asked for (H200, CUDA 13.0): it takes all SMs and is over the sooner.
  void move_own(hipStream_t stream) {
    launch_push(args_, stream);
    if (args_.own_source == nullptr || args_.own_blocks + args_.push_blocks != 0) return;
    char* const to = args_.own_target;
    if (!stream_words_.counted() && copy_beside(to, args_.own_source, args_.own_bytes, stream)) {
      return;
    }
    check_runtime(
        hipMemcpyAsync(to, args_.own_source, args_.own_bytes, hipMemcpyDefault, stream),
        "cudaMemcpyAsync");
  }

  ExchangeArgs args_;
  Piece leaving_; // what is copied to scratch first
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
