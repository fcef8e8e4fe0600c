// SPDX-License-Identifier: MIT
#include "lib/engine/model_engine.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "device/packet.hpp"
#include "device/platform.hpp"

namespace ferry::core {

// A queue offers its engine no more than consume(), which carries packets out whole and at once.
// The model takes them one by one and lets them land later, with the decoder, position and errors
// of the queue.
struct QueueInside {
  static Decoder& decoder_of(Queue& queue) { return queue.decoder_; }
  static std::uint64_t& position_of(Queue& queue) { return queue.position_; }
  static QueueState fail_queue(Queue& queue, const Status& error) {
    return queue.fail(error.kind, error.cause);
  }
};

namespace {

using device::PacketKind;
using std::uint64_t;

uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

// Small, and the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t bound) {
    state_ += 0x9e3779b97f4a7c15u;
    return mix(state_) % bound;
  }
  bool one_in(uint64_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

// Relaxed, so that counting orders nothing between the ranks that share the engine.
void count(std::atomic<uint64_t>& what) {
  what.fetch_add(1, std::memory_order_relaxed);
}

bool moves_data(PacketKind kind) {
  return kind == PacketKind::copy || kind == PacketKind::fill || kind == PacketKind::write;
}

// Carried out when it starts, and not later.
bool is_immediate(PacketKind kind) {
  return kind == PacketKind::nop || kind == PacketKind::poll || kind == PacketKind::poll64;
}

uint64_t join(const std::vector<std::uint32_t>& dwords, std::size_t at) {
  return dwords[at] | uint64_t{dwords[at + 1]} << 32;
}

constexpr std::uint32_t kNoPacket = 0xff;
constexpr uint64_t kTurns = 2; // one in so many, the caller is asked to come again at once

} // namespace

// What the model knows about one queue.
class ModelQueue {
 public:
  ModelQueue(uint64_t number, const ModelSettings& settings, ModelCounts& counts)
      : number_(number),
        settings_(settings),
        counts_(counts),
        random_(mix(settings.seed) ^ mix(number + 1)),
        depth_(1 + random_.below(6)),
        steps_(1 + random_.below(12)),
        parts_(1 + random_.below(8)),
        idles_(2 + random_.below(6)),
        early_rptr_(random_.one_in(2)),
        stall_left_(settings.stall.queue == number ? settings.stall_turns : 0) {}

  QueueState turn(Queue& queue);
  bool comes_again() { return random_.one_in(kTurns); }

 private:
  struct Part {
    uint64_t at;
    uint64_t bytes;
  };
  // A packet that has started. It keeps its dwords: the ring may be written behind rptr.
  struct Packet {
    PacketKind kind;
    uint64_t offset;
    std::vector<std::uint32_t> dwords;
    std::vector<Part> parts; // of a copy: what has not landed, the last one comes first
  };

  bool stands_still();
  bool step(Queue& queue, uint64_t doorbell);
  [[nodiscard]] bool may_start(uint64_t position, uint64_t doorbell);
  [[nodiscard]] bool may_land(std::size_t index) const;
  void start(Queue& queue, uint64_t doorbell);
  void accept(Queue& queue, const device::PacketInfo& info, const std::uint32_t* dw, uint64_t size);
  void carry_out(Queue& queue, const std::uint32_t* dw, uint64_t published, uint64_t contiguous);
  void pass(Queue& queue, uint64_t bytes);
  std::vector<Part> cut(const std::vector<std::uint32_t>& copy);
  void land(Queue& queue, std::size_t index);
  StepState land_part(Queue& queue, Packet& packet);
  void count_landing(std::size_t index);
  void release(Queue& queue);
  void fail(Queue& queue, uint64_t offset);
  void note(uint64_t offset, uint64_t what);

  const uint64_t number_;
  const ModelSettings& settings_;
  ModelCounts& counts_;
  Random random_;
  const uint64_t depth_; // packets that may be under way
  const uint64_t steps_; // at most in a turn
  const uint64_t parts_; // of a copy, at most
  const uint64_t idles_; // one turn in so many does nothing
  const bool early_rptr_; // rptr passes packets that have started; otherwise those that landed
  std::vector<Packet> under_way_; // in the order of their start
  uint64_t started_ = 0; // packets
  uint64_t stall_left_; // turns at the packet of settings.stall
  uint64_t pause_ = 0; // turns
  bool held_ = false; // a poll did not hold in this turn
};

QueueState ModelQueue::turn(Queue& queue) {
  if (queue.consume(0) == QueueState::failed) return QueueState::failed;
  // Pairs with the release of the doorbell: everything below it was written before.
  const uint64_t doorbell = device::load_acquire(queue.ring().doorbell);
  if (under_way_.empty() && QueueInside::position_of(queue) == doorbell) return QueueState::drained;
  if (stands_still()) return QueueState::blocked;
  held_ = false;
  bool moved = false;
  for (uint64_t left = 1 + random_.below(steps_); left > 0; --left) {
    if (!step(queue, doorbell)) break;
    if (queue.failed()) return QueueState::failed;
    moved = true;
  }
  if (under_way_.empty() && QueueInside::position_of(queue) == doorbell) return QueueState::drained;
  return moved ? QueueState::advanced : QueueState::blocked;
}

bool ModelQueue::stands_still() {
  if (pause_ == 0 && random_.one_in(64)) {
    pause_ = 1 + random_.below(64);
    count(counts_.stalls);
  }
  if (pause_ > 0) --pause_;
  return pause_ > 0 || random_.one_in(idles_);
}

// One of all things that may happen next on this queue; false when there is none.
bool ModelQueue::step(Queue& queue, uint64_t doorbell) {
  std::vector<std::size_t> choices;
  for (std::size_t i = 0; i < under_way_.size(); ++i) {
    if (may_land(i)) choices.push_back(i);
  }
  const std::size_t start_next = under_way_.size();
  if (may_start(QueueInside::position_of(queue), doorbell)) choices.push_back(start_next);
  if (choices.empty()) return false;
  const std::size_t choice = choices[random_.below(choices.size())];
  if (choice == start_next) {
    start(queue, doorbell);
  } else {
    land(queue, choice);
  }
  if (!queue.failed()) release(queue);
  return true;
}

bool ModelQueue::may_start(uint64_t position, uint64_t doorbell) {
  if (held_ || position == doorbell || under_way_.size() >= depth_) return false;
  if (settings_.stall.queue != number_ || settings_.stall.packet != started_) return true;
  if (stall_left_ == 0) return true;
  if (stall_left_ != ModelSettings::kForEver) --stall_left_;
  held_ = true;
  return false;
}

bool ModelQueue::may_land(std::size_t index) const {
  const PacketKind kind = under_way_[index].kind;
  if (!moves_data(kind)) return index == 0;
  const auto before = under_way_.begin() + static_cast<std::ptrdiff_t>(index);
  return std::none_of(under_way_.begin(), before, [kind](const Packet& packet) {
    return kind == PacketKind::write ? packet.kind == kind : moves_data(packet.kind);
  });
}

void ModelQueue::start(Queue& queue, uint64_t doorbell) {
  const device::RingHandle& ring = queue.ring();
  const uint64_t position = QueueInside::position_of(queue);
  const uint64_t at = position & (ring.bytes - 1);
  const std::uint32_t* const dw = ring.base + at / 4;
  const uint64_t published = (doorbell - position) / 4;
  const uint64_t contiguous = std::min(published, (ring.bytes - at) / 4);
  if (settings_.bad_packet.queue == number_ && settings_.bad_packet.packet == started_) {
    return carry_out(queue, &kNoPacket, 1, 1);
  }
  const device::PacketInfo* const info = device::find_packet(dw[0]);
  const bool whole = info != nullptr && info->min_dwords <= contiguous &&
                     device::packet_dwords(*info, dw) <= contiguous;
  if (!whole || is_immediate(info->kind)) return carry_out(queue, dw, published, contiguous);
  accept(queue, *info, dw, device::packet_dwords(*info, dw));
}

// Packets that take effect now or never: NOPs, polls, and what no decoder accepts.
void ModelQueue::carry_out(
    Queue& queue, const std::uint32_t* dw, uint64_t published, uint64_t contiguous) {
  uint64_t used = 0;
  StepState state = QueueInside::decoder_of(queue).step(dw, published, contiguous, &used);
  if (state == StepState::failed) return fail(queue, QueueInside::position_of(queue));
  if (state == StepState::blocked && settings_.early_polls && random_.one_in(4)) {
    count(counts_.early_polls);
    state = StepState::done;
  }
  held_ = state == StepState::blocked;
  if (!held_) pass(queue, used * 4);
}

void ModelQueue::accept(
    Queue& queue, const device::PacketInfo& info, const std::uint32_t* dw, uint64_t size) {
  Packet packet{info.kind, QueueInside::position_of(queue), {dw, dw + size}, {}};
  if (info.kind == PacketKind::copy) packet.parts = cut(packet.dwords);
  if (packet.parts.size() > 1) count(counts_.parted_copies);
  under_way_.push_back(std::move(packet));
  pass(queue, size * 4);
}

void ModelQueue::pass(Queue& queue, uint64_t bytes) {
  note(QueueInside::position_of(queue), started_);
  QueueInside::position_of(queue) += bytes;
  ++started_;
}

// Parts of random length in random order. Ranges that overlap stay whole, and so do packets that
// the decoder should see as they are, because it will refuse them.
std::vector<ModelQueue::Part> ModelQueue::cut(const std::vector<std::uint32_t>& copy) {
  const uint64_t bytes = uint64_t{copy[1]} + 1;
  const uint64_t from = join(copy, 3);
  const uint64_t to = join(copy, 5);
  const bool overlap = to - from < bytes || from - to < bytes;
  if (overlap || bytes > device::kMaxCopyBytes || copy[2] != 0 || copy[0] != 1) return {};
  std::vector<uint64_t> ends{bytes};
  for (uint64_t i = random_.below(parts_); i > 0; --i) ends.push_back(1 + random_.below(bytes));
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<Part> parts;
  uint64_t begin = 0;
  for (const uint64_t end : ends) {
    parts.push_back({begin, end - begin});
    begin = end;
  }
  for (std::size_t i = parts.size(); i > 1; --i) std::swap(parts[i - 1], parts[random_.below(i)]);
  return parts;
}

void ModelQueue::land(Queue& queue, std::size_t index) {
  Packet& packet = under_way_[index];
  note(packet.offset, ~packet.parts.size());
  StepState state = StepState::done;
  if (packet.parts.empty()) {
    const uint64_t size = packet.dwords.size();
    uint64_t used = 0;
    count_landing(index);
    state = QueueInside::decoder_of(queue).step(packet.dwords.data(), size, size, &used);
  } else {
    state = land_part(queue, packet);
  }
  if (state == StepState::failed) return fail(queue, packet.offset);
  if (packet.parts.empty()) {
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(index));
  }
}

// The part is a packet of its own for the decoder, which checks that it lies in windows.
StepState ModelQueue::land_part(Queue& queue, Packet& packet) {
  const Part part = packet.parts.back();
  packet.parts.pop_back();
  device::CopyPacket copy{};
  const device::PacketStatus status = device::build_copy(
      copy, join(packet.dwords, 5) + part.at, join(packet.dwords, 3) + part.at, part.bytes);
  uint64_t used = 0;
  // What cannot be built, a copy from or to null, is for the decoder to refuse as it came.
  const std::uint32_t* const dw =
      status == device::PacketStatus::ok ? copy.dw : packet.dwords.data();
  return QueueInside::decoder_of(queue).step(dw, std::size(copy.dw), std::size(copy.dw), &used);
}

void ModelQueue::count_landing(std::size_t index) {
  const PacketKind kind = under_way_[index].kind;
  if (kind == PacketKind::write) {
    const auto before = under_way_.begin() + static_cast<std::ptrdiff_t>(index);
    const bool overtakes = std::any_of(under_way_.begin(), before, [](const Packet& packet) {
      return packet.kind == PacketKind::copy;
    });
    if (overtakes) count(counts_.overtaking_writes);
  }
  const bool signal = kind == PacketKind::atomic || kind == PacketKind::fence;
  if (signal && under_way_.size() > 1) count(counts_.late_signals);
}

void ModelQueue::release(Queue& queue) {
  const bool landed = early_rptr_ || under_way_.empty();
  // Pairs with the acquire of a producer that reuses the space, or of a flush.
  device::store_release(
      queue.ring().rptr, landed ? QueueInside::position_of(queue) : under_way_.front().offset);
}

// Nothing of this queue lands any more; the error names where the packet is.
void ModelQueue::fail(Queue& queue, uint64_t offset) {
  under_way_.clear();
  QueueInside::position_of(queue) = offset;
  QueueInside::fail_queue(queue, QueueInside::decoder_of(queue).error());
}

void ModelQueue::note(uint64_t offset, uint64_t what) {
  const uint64_t step = counts_.steps.fetch_add(1, std::memory_order_relaxed);
  const uint64_t done = mix(step + 1) ^ mix(number_ + mix(offset)) ^ what;
  counts_.trace.fetch_add(mix(done), std::memory_order_relaxed);
}

ModelEngine::ModelEngine(const ModelSettings& settings) : settings_(settings) {}

ModelEngine::~ModelEngine() = default;

ModelEngine::Stripe& ModelEngine::stripe(const Queue* queue) {
  return stripes_[mix(reinterpret_cast<std::uintptr_t>(queue)) % stripes_.size()];
}

ModelQueue& ModelEngine::state(const Queue* queue) {
  Stripe& home = stripe(queue);
  const std::lock_guard lock(home.mutex);
  auto& state = home.queues[queue];
  if (state == nullptr) {
    state = std::make_unique<ModelQueue>(
        submitted_.fetch_add(1, std::memory_order_relaxed), settings_, counts_);
  }
  return *state;
}

void ModelEngine::submit(std::span<Queue* const> queues) {
  for (const Queue* const queue : queues) state(queue);
}

QueueState ModelEngine::progress(std::span<Queue* const> queues) {
  bool drained = true;
  bool again = false;
  for (Queue* const queue : queues) {
    ModelQueue& model = state(queue);
    const QueueState state = model.turn(*queue);
    if (state == QueueState::failed) return state;
    drained &= state == QueueState::drained;
    again |= state == QueueState::advanced && model.comes_again();
  }
  if (drained) return QueueState::drained;
  return again ? QueueState::advanced : QueueState::blocked;
}

void ModelEngine::retire(std::span<Queue* const> queues) {
  for (const Queue* const queue : queues) {
    Stripe& home = stripe(queue);
    const std::lock_guard lock(home.mutex);
    home.queues.erase(queue);
  }
}

void ModelEngine::restart(const ModelSettings& settings) {
  for (Stripe& home : stripes_) home.queues.clear();
  submitted_ = 0;
  settings_ = settings;
  for (auto* const count :
       {&counts_.steps, &counts_.parted_copies, &counts_.overtaking_writes, &counts_.late_signals,
        &counts_.early_polls, &counts_.stalls, &counts_.trace}) {
    *count = 0;
  }
}

} // namespace ferry::core
