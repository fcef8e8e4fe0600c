// SPDX-License-Identifier: MIT
// The path through host memory that all ranks share: for ranks whose buffers lie in host memory,
// for GPUs that do not see each other, and for memory that no other process can map. In chunks of
// which each pair of ranks has two, so that one is filled while the other is emptied.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/platform.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "lib/nvidia/plan.hpp"

namespace ferry::nvidia {

namespace {

constexpr std::uint64_t kStageDepth = 2;

// The chunks of one direction of one pair.
struct Flow {
  std::uint64_t chunks = 0;
  std::uint64_t chunk_bytes = 0;
  std::uint64_t bytes = 0;
  char* stage = nullptr; // of the sender, for this receiver
  const char* from = nullptr; // user memory of the sender
  char* to = nullptr; // of the receiver
  const std::uint64_t* wait = nullptr;
  std::uint64_t* raise = nullptr;

  [[nodiscard]] char* slot(std::uint64_t chunk) const {
    return stage + chunk % kStageDepth * chunk_bytes;
  }
  [[nodiscard]] std::uint64_t length(std::uint64_t chunk) const {
    return std::min(chunk_bytes, bytes - chunk * chunk_bytes);
  }
};

// Chunks of a start are a multiple of the depth, the last may be empty, so that a chunk has the
// same slot in every start.
std::uint64_t chunks_of(std::uint64_t bytes, std::uint64_t chunk_bytes) {
  const std::uint64_t needed = (bytes + chunk_bytes - 1) / chunk_bytes;
  return (needed + kStageDepth - 1) / kStageDepth * kStageDepth;
}

struct Flows {
  std::vector<Flow> out;
  std::vector<Flow> in;
};

Flows list_flows(const Blocks& blocks, const Wiring& wiring) {
  Flows flows;
  for (int i = 1; i < blocks.ranks; ++i) {
    const int peer = (blocks.rank + i) % blocks.ranks;
    const auto p = static_cast<std::size_t>(peer);
    const auto me = static_cast<std::size_t>(blocks.rank);
    Flow flow;
    flow.chunk_bytes = wiring.chunk_bytes;
    const std::uint64_t pair = kStageDepth * wiring.chunk_bytes;
    if (const Piece out = blocks.source(peer); out.bytes != 0) {
      flow.bytes = out.bytes;
      flow.chunks = chunks_of(out.bytes, wiring.chunk_bytes);
      flow.stage = wiring.stages[me] + p * pair;
      flow.from = out.at;
      flow.wait = &wiring.seen[p]->consumed;
      flow.raise = &wiring.written[p]->produced;
      flows.out.push_back(flow);
    }
    if (const Piece in = blocks.result(peer); in.bytes != 0) {
      flow.bytes = in.bytes;
      flow.chunks = chunks_of(in.bytes, wiring.chunk_bytes);
      flow.stage = wiring.stages[p] + me * pair;
      flow.to = in.at;
      flow.wait = &wiring.seen[p]->produced;
      flow.raise = &wiring.written[p]->consumed;
      flows.in.push_back(flow);
    }
  }
  return flows;
}

std::string explain_staged(const Wiring& wiring) {
  return fmt::format("host memory: {}; {} bytes a block", wiring.staged, wiring.largest);
}

void copy_async(void* to, const void* from, std::uint64_t bytes, hipStream_t stream) {
  if (bytes == 0) return;
  check_runtime(hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, stream), "cudaMemcpyAsync");
}

// Buffers in device memory: everything is queued at once, each direction of a pair on a stream.
class StagedDevicePlan final : public StreamPlan {
 public:
  StagedDevicePlan(const Blocks& blocks, Wiring wiring, core::DeviceTeam& team)
      : StreamPlan(blocks, std::move(wiring), team), flows_(list_flows(blocks_, wiring_)) {
    const DeviceScope scope(wiring_.device);
    make_sides(flows_.out.size() + flows_.in.size());
    if (!blocks_.trades_places()) return;
    leaving_ = blocks_.sending();
    scratch_ = DeviceBlock(leaving_.bytes);
    for (Flow& flow : flows_.out) flow.from = scratch_.get() + (flow.from - leaving_.at);
  }

  [[nodiscard]] std::string explain() const override { return explain_staged(wiring_); }

 protected:
  void enqueue(hipStream_t stream) override {
    if (scratch_.get() != nullptr) {
      copy_async(scratch_.get(), leaving_.at, leaving_.bytes, stream);
    }
    stream_words_.advance(stream, {});
    fork(stream);
    std::size_t i = 0;
    for (const Flow& flow : flows_.out) send(flow, side(i++));
    for (const Flow& flow : flows_.in) receive(flow, side(i++));
    if (blocks_.keeps_own()) {
      const Piece own = blocks_.source(blocks_.rank);
      copy_async(blocks_.result(blocks_.rank).at, own.at, own.bytes, stream);
    }
    join(stream);
  }

 private:
  // Chunk c of epoch e is the (e - 1) * chunks + c + 1st of this pair.
  [[nodiscard]] static StreamWords::Value number(const Flow& flow, std::uint64_t chunk) {
    return {
        flow.chunks, static_cast<std::int64_t>(chunk + 1) - static_cast<std::int64_t>(flow.chunks)};
  }

  void send(const Flow& flow, hipStream_t stream) {
    for (std::uint64_t c = 0; c < flow.chunks; ++c) {
      StreamWords::Value free = number(flow, c);
      free.offset -= static_cast<std::int64_t>(kStageDepth);
      stream_words_.wait(stream, {&flow.wait, 1}, free);
      if (c * flow.chunk_bytes < flow.bytes) {
        copy_async(flow.slot(c), flow.from + c * flow.chunk_bytes, flow.length(c), stream);
      }
      stream_words_.raise(stream, {&flow.raise, 1}, number(flow, c));
    }
  }

  void receive(const Flow& flow, hipStream_t stream) {
    for (std::uint64_t c = 0; c < flow.chunks; ++c) {
      stream_words_.wait(stream, {&flow.wait, 1}, number(flow, c));
      if (c * flow.chunk_bytes < flow.bytes) {
        copy_async(flow.to + c * flow.chunk_bytes, flow.slot(c), flow.length(c), stream);
      }
      stream_words_.raise(stream, {&flow.raise, 1}, number(flow, c));
    }
  }

  Flows flows_;
  Piece leaving_; // what is copied to scratch first
  DeviceBlock scratch_;
};

// A buffer in host memory: the thread that waits moves the chunks.
class StagedHostPlan final : public core::DevicePlan {
 public:
  StagedHostPlan(const Blocks& blocks, Wiring wiring, core::DeviceTeam& team)
      : blocks_(blocks), wiring_(std::move(wiring)), name_(team.name()) {
    flows_ = list_flows(blocks_, wiring_);
    done_out_.resize(flows_.out.size());
    done_in_.resize(flows_.in.size());
    if (!blocks_.trades_places()) return;
    leaving_ = blocks_.sending();
    scratch_.resize(leaving_.bytes);
    for (Flow& flow : flows_.out) flow.from = scratch_.data() + (flow.from - leaving_.at);
  }

  void start() override {
    ++epoch_;
    std::fill(done_out_.begin(), done_out_.end(), 0);
    std::fill(done_in_.begin(), done_in_.end(), 0);
    began_ = false;
  }

  void start_on_stream(void*) override {
    throw core::Failure(
        core::ErrorKind::buffer, "a buffer of this rank lies in host memory",
        "start it from the host, or put the buffers into device memory");
  }

  core::Poll progress() override {
    if (!status_.ok()) return core::Poll::ready;
    try {
      return advance() ? core::Poll::ready : core::Poll::pending;
    } catch (const core::Failure& failure) {
      status_ = failure.status();
      return core::Poll::ready;
    }
  }

  [[nodiscard]] const core::Status& status() const override { return status_; }
  [[nodiscard]] std::string missing() const override {
    return fmt::format(
        "{} on {}, start {}: chunks of a peer", core::name_of(blocks_.desc.operation), name_,
        epoch_);
  }
  [[nodiscard]] std::string explain() const override { return explain_staged(wiring_); }

 private:
  void copy(void* to, const void* from, std::uint64_t bytes) const {
    if (bytes == 0) return;
    if (wiring_.device < 0) {
      std::memcpy(to, from, bytes);
      return;
    }
    const DeviceScope scope(wiring_.device);
    check_runtime(hipMemcpy(to, from, bytes, hipMemcpyDefault), "cudaMemcpy");
  }

  void begin() {
    copy(scratch_.data(), leaving_.at, leaving_.bytes);
    if (blocks_.keeps_own()) {
      const Piece own = blocks_.source(blocks_.rank);
      copy(blocks_.result(blocks_.rank).at, own.at, own.bytes);
    }
    began_ = true;
  }

  [[nodiscard]] bool advance() {
    if (!began_) begin();
    bool all = true;
    for (std::size_t i = 0; i < flows_.out.size(); ++i) {
      all &= move(flows_.out[i], done_out_[i], kStageDepth);
    }
    for (std::size_t i = 0; i < flows_.in.size(); ++i) all &= move(flows_.in[i], done_in_[i], 0);
    return all;
  }

  // One chunk, when the peer lets it: a sender is `ahead` chunks ahead of it. True: none is left.
  [[nodiscard]] bool move(const Flow& flow, std::uint64_t& done, std::uint64_t ahead) const {
    if (done == flow.chunks) return true;
    const std::uint64_t number = (epoch_ - 1) * flow.chunks + done + 1;
    if (device::load_acquire(flow.wait) + ahead < number) return false;
    const std::uint64_t at = done * flow.chunk_bytes;
    if (at < flow.bytes) {
      const bool sends = ahead != 0;
      copy(
          sends ? flow.slot(done) : flow.to + at, sends ? flow.from + at : flow.slot(done),
          flow.length(done));
    }
    device::store_release(flow.raise, number);
    return ++done == flow.chunks;
  }

  const Blocks blocks_;
  Wiring wiring_;
  const std::string name_;
  Flows flows_;
  std::vector<std::uint64_t> done_out_;
  std::vector<std::uint64_t> done_in_;
  Piece leaving_; // what is copied to scratch first
  std::vector<char> scratch_;
  std::uint64_t epoch_ = 0;
  bool began_ = true;
  core::Status status_;
};

} // namespace

std::unique_ptr<core::DevicePlan> make_staged_plan(
    const Blocks& blocks, Wiring wiring, core::DeviceTeam& team) {
  if (wiring.host_memory) return std::make_unique<StagedHostPlan>(blocks, std::move(wiring), team);
  return std::make_unique<StagedDevicePlan>(blocks, std::move(wiring), team);
}

} // namespace ferry::nvidia
