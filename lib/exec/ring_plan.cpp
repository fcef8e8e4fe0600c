// SPDX-License-Identifier: MIT
#include "lib/exec/ring_plan.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <cstring>

#include "device/copy.hpp"
#include "device/packet.hpp"

namespace ferry::core {
namespace {

constexpr std::uint64_t kSmallestLap = 64;
constexpr int kTurns = 64; // of an engine that has more to do, before others get theirs

std::uint64_t lap_bytes(const RingImage& image) {
  return std::max(kSmallestLap, std::bit_ceil(image.dwords.size() * sizeof(std::uint32_t)));
}

const char* signal_name(SignalKind kind) {
  switch (kind) {
    case SignalKind::ready:
      return "its buffers";
    case SignalKind::moved:
      return "the end of its transfer";
    case SignalKind::filled:
      return "a filled stage chunk";
    case SignalKind::drained:
      return "a drained stage chunk";
    case SignalKind::slot:
      return "a slot";
  }
  return "?";
}

// The lines that are written are in the cache of whoever read them last; they are fetched a step
// ahead of the bytes. 64 KiB of 64 bytes in 128, through a stage and back: 18 us without, 15 with.
void pack_for_peer(const HostOp& op, const std::byte* from, std::byte* to) {
  constexpr std::uint64_t kStep = 3 * 1024; // whole pieces of most sizes
  constexpr std::uint64_t kLine = 64;
  for (std::uint64_t at = 0; at < op.bytes; at += kStep) {
    const std::uint64_t next = std::min(op.bytes, at + 2 * kStep);
    for (std::uint64_t line = at + kStep; line < next; line += kLine) {
      device::prefetch_for_write(to + line);
    }
    pack(*op.from_layout, from, op.from_skip + at, std::min(kStep, op.bytes - at), to + at);
  }
}

void host_copy(const HostOp& op) {
  auto* to = reinterpret_cast<std::byte*>(op.to);
  const auto* from = reinterpret_cast<const std::byte*>(op.from);
  if (op.to_layout != nullptr && op.from_layout != nullptr) {
    copy_layout(*op.to_layout, to, *op.from_layout, from); // the own block, as a whole
  } else if (op.to_layout != nullptr) {
    unpack(*op.to_layout, to, op.to_skip, op.bytes, from);
  } else if (op.from_layout != nullptr) {
    pack_for_peer(op, from, to);
  } else if (to != from) {
    device::copy_bytes(to, from, op.bytes);
  }
}

} // namespace

RingPlan::RingPlan(Team& team, SignalCounts& counts, std::string label)
    : team_(team), counts_(counts), label_(std::move(label)) {}

RingPlan::~RingPlan() {
  if (!list_.empty()) process_engine().retire(list_);
}

void RingPlan::bind(Program program, WindowSet windows) {
  program_ = std::move(program);
  windows_ = std::move(windows);
  const std::size_t rings = program_.rings.size();
  if (queues_.size() != rings) {
    queues_.clear();
    list_.clear();
    laps_.assign(rings, {});
    for (std::size_t i = 0; i < rings; ++i) {
      laps_[i].bytes = lap_bytes(program_.rings[i]);
      queues_.push_back(std::make_unique<Queue>(2 * laps_[i].bytes));
      queues_[i]->set_id(static_cast<int>(i) + 1);
      queues_[i]->set_windows(&windows_);
      queues_[i]->set_hook(team_.hook(), team_.rank());
      list_.push_back(queues_[i].get());
    }
  }
  for (std::size_t i = 0; i < rings; ++i) write_image(i);
}

// Both laps get the packets, with NOPs behind them up to the end of the lap.
void RingPlan::write_image(std::size_t ring) {
  const auto& dwords = program_.rings[ring].dwords;
  const std::uint64_t lap = laps_[ring].bytes / sizeof(std::uint32_t);
  for (std::uint64_t copy = 0; copy < 2; ++copy) {
    std::uint32_t* out = queues_[ring]->image() + copy * lap;
    std::copy(dwords.begin(), dwords.end(), out);
    for (std::uint64_t at = dwords.size(); at < lap;) {
      const std::uint64_t skip = std::min(lap - at, device::kMaxNopDwords);
      out[at] = device::nop_header(skip);
      at += skip;
    }
  }
}

void RingPlan::patch(std::size_t ring, std::uint64_t lap) {
  std::uint32_t* dwords =
      queues_[ring]->image() + lap * (laps_[ring].bytes / sizeof(std::uint32_t));
  for (const PollPatch& poll : program_.rings[ring].polls) {
    const std::uint64_t reference = counts_.base[poll.word] + poll.ordinal;
    dwords[poll.dword] = static_cast<std::uint32_t>(reference);
    dwords[poll.dword + 1] = static_cast<std::uint32_t>(reference >> 32);
  }
}

// Entry signals first: peers may be waiting for nothing else.
void RingPlan::begin_host() {
  next_host_.assign(program_.host.size(), 0);
  open_host_ = program_.host.size();
  const auto& ops = program_.host.front().ops;
  std::size_t& next = next_host_.front();
  for (; next < ops.size() && ops[next].kind == StepKind::signal; ++next) host_step(ops[next]);
}

void RingPlan::start() {
  if (!status_.ok()) status_ = {};
  running_ = true;
  rings_drained_ = list_.empty();
  begin_host();
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    patch(i, laps_[i].started % 2);
    ++laps_[i].started;
    queues_[i]->publish(laps_[i].started * laps_[i].bytes);
  }
  if (!list_.empty()) process_engine().submit(list_);
}

bool RingPlan::host_step(const HostOp& op) {
  switch (op.kind) {
    case StepKind::copy:
      host_copy(op);
      return true;
    case StepKind::signal:
      // Pairs with the acquire of the peer's poll or SignalCounts::seen().
      reinterpret_cast<std::atomic<std::uint64_t>*>(op.to)->fetch_add(1);
      team_.wake_rank(op.peer, false);
      return true;
    case StepKind::await:
      return counts_.seen(op.word) >= counts_.base[op.word] + op.ordinal;
  }
  return false;
}

bool RingPlan::run_host() {
  for (std::size_t queue = 0; open_host_ > 0 && queue < next_host_.size(); ++queue) {
    const auto& ops = program_.host[queue].ops;
    std::size_t& next = next_host_[queue];
    if (next > ops.size()) continue; // counted as done
    for (; next < ops.size() && host_step(ops[next]); ++next) {
    }
    if (next < ops.size()) continue;
    next = ops.size() + 1;
    --open_host_;
  }
  return open_host_ == 0;
}

Poll RingPlan::progress() {
  if (!running_) return Poll::ready;
  if (!rings_drained_) {
    QueueState state = process_engine().progress(list_);
    for (int i = 0; i < kTurns && state == QueueState::advanced; ++i) {
      state = process_engine().progress(list_);
    }
    if (state == QueueState::failed) {
      for (const Queue* queue : list_) {
        if (queue->failed()) status_ = queue->error();
      }
      running_ = false;
      return Poll::ready;
    }
    rings_drained_ = state == QueueState::drained;
  }
  if (!run_host() || !rings_drained_) return Poll::pending;
  for (std::size_t word = 0; word < counts_.base.size(); ++word) {
    counts_.base[word] += program_.arrivals[word];
  }
  running_ = false;
  return Poll::ready;
}

std::string RingPlan::missing() const {
  const auto ranks = static_cast<std::size_t>(team_.ranks());
  for (std::size_t word = 0; word < counts_.base.size(); ++word) {
    const std::uint64_t expected = counts_.base[word] + program_.arrivals[word];
    const std::uint64_t seen = counts_.seen(word);
    if (seen >= expected) continue;
    return fmt::format(
        "{}: waits for {} from rank {} (signal {} of {} in this epoch)", label_,
        signal_name(static_cast<SignalKind>(word / ranks)), word % ranks, seen - counts_.base[word],
        program_.arrivals[word]);
  }
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    if (queues_[i]->drained()) continue;
    return fmt::format(
        "{}: queue {} to rank {} has consumed {} of {} bytes of packets", label_, i + 1,
        program_.rings[i].peer, queues_[i]->consumed(), queues_[i]->written());
  }
  return fmt::format("{}: about to finish", label_);
}

} // namespace ferry::core
