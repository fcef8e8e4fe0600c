// SPDX-License-Identifier: MIT
// The engines of the modelled driver: one thread of each process moves all of its queues.
#include <algorithm>
#include <chrono>
#include <stop_token>

#include "device/packet_build.hpp"
#include "device/packet_table.hpp"
#include "device/platform.hpp"
#include "lib/amd/topology.hpp"
#include "tests/amd/fake/kernel.hpp"

namespace ferry::test {
namespace {

using device::FieldId;
using device::PacketKind;
using std::chrono::microseconds;

constexpr std::uint64_t kSmallCopy = 16 * 1024;
constexpr microseconds kFirstNap{20};
constexpr microseconds kLongestNap{400};

std::uint64_t next_random(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

} // namespace

void FakeKernel::run_engines(const std::stop_token& stop) {
  microseconds nap = kFirstNap;
  for (; !stop.stop_requested();) {
    bool moved = false;
    if (!paused_) {
      const std::lock_guard lock(mutex_);
      for (const auto& [id, queue] : queues_) {
        // Queues have no order among each other.
        if (next_random(random_) % 4 != 0) moved |= turn(*queue);
      }
    }
    nap = moved ? kFirstNap : std::min(nap * 2, kLongestNap);
    if (!moved) std::this_thread::sleep_for(nap);
  }
}

bool FakeKernel::turn(Consumer& consumer) {
  if (consumer.stopped || settings_.faults.hanging.contains({consumer.node, consumer.engine})) {
    return false;
  }
  // Some devices list engines that are not there.
  if (model_.odd_engines_hang != 0 && consumer.engine % 2 != 0) return false;
  const std::uint64_t doorbell = device::load_acquire(consumer.doorbell);
  // Packets may be under way behind rptr.
  const bool under_way = consumer.copy != nullptr;
  if (doorbell == 0 || (doorbell == consumer.position && !under_way)) return false;
  if (doorbell > device::load_acquire(consumer.wptr)) {
    stop(consumer, "the doorbell rang before wptr was stored");
    return false;
  }
  if (doorbell - consumer.position > consumer.bytes) {
    stop(consumer, "the doorbell is more than a ring ahead");
    return false;
  }
  return plain(consumer) ? turn_in_order(consumer, doorbell) : turn_freely(consumer, doorbell);
}

// Engines with a fault of their own do one thing after the other.
bool FakeKernel::plain(const Consumer& consumer) const {
  const NodeEngine here{consumer.node, consumer.engine};
  return consumer.copy == nullptr || settings_.faults.hanging_above.contains(here) ||
         settings_.faults.cutting.contains(here);
}

// What is new below the doorbell is fetched; the ring may be written again behind rptr.
bool FakeKernel::turn_freely(Consumer& consumer, std::uint64_t doorbell) {
  core::Queue& copy = *consumer.copy;
  const auto* const ring = reinterpret_cast<const std::uint32_t*>(consumer.ring);
  for (; consumer.position != doorbell; consumer.position += 4) {
    const std::uint64_t at = (consumer.position & (consumer.bytes - 1)) / 4;
    copy.image()[at] = ring[at];
  }
  copy.publish(doorbell);
  const std::uint64_t before = engine_.counts().steps;
  core::Queue* const list[] = {&copy};
  if (engine_.progress(list) == core::QueueState::failed) stop(consumer, copy.error().cause);
  device::store_release(consumer.rptr, copy.consumed());
  return engine_.counts().steps != before;
}

bool FakeKernel::turn_in_order(Consumer& consumer, std::uint64_t doorbell) {
  bool moved = false;
  std::uint64_t packets = 1 + next_random(random_) % 6;
  for (; packets > 0 && consumer.position != doorbell; --packets) {
    const std::uint64_t at = consumer.position & (consumer.bytes - 1);
    const auto* const dw = reinterpret_cast<const std::uint32_t*>(consumer.ring + at);
    const std::uint64_t published = (doorbell - consumer.position) / 4;
    const std::uint64_t contiguous = std::min(published, (consumer.bytes - at) / 4);
    std::uint64_t used = 0;
    const core::StepState state = step(consumer, dw, published, contiguous, &used);
    if (state == core::StepState::failed) stop(consumer, consumer.decoder.error().cause);
    if (state != core::StepState::done) return moved;
    consumer.position += used * 4;
    device::store_release(consumer.rptr, consumer.position);
    moved = true;
  }
  return moved;
}

core::StepState FakeKernel::step(
    Consumer& consumer, const std::uint32_t* dw, std::uint64_t published, std::uint64_t contiguous,
    std::uint64_t* used) {
  const auto generation = *amd::generation_of(model_.gfx);
  const device::Packet* const packet = device::find_packet(generation, dw[0]);
  const NodeEngine here{consumer.node, consumer.engine};
  const bool copies = packet != nullptr && packet->kind == PacketKind::copy;
  if (copies) std::this_thread::sleep_for(settings_.copy_time);
  const bool faulty =
      settings_.faults.hanging_above.contains(here) || settings_.faults.cutting.contains(here);
  if (faulty && copies && contiguous >= 7) {
    const std::uint64_t bytes =
        device::field_value(device::field_of(*packet, generation, FieldId::bytes), dw);
    if (bytes > kSmallCopy) {
      if (settings_.faults.hanging_above.contains(here)) return core::StepState::blocked;
      std::uint32_t cut[7];
      std::copy(dw, dw + 7, cut);
      cut[1] -= 1; // the field holds bytes - 1
      return consumer.decoder.step(cut, 7, 7, used);
    }
  }
  return consumer.decoder.step(dw, published, contiguous, used);
}

void FakeKernel::stop(Consumer& consumer, const std::string& why) {
  consumer.stopped = true;
  faults_.push_back(
      "node " + std::to_string(consumer.node) + " engine " + std::to_string(consumer.engine) +
      " offset " + std::to_string(consumer.position) + ": " + why);
  if (fault_handler_) fault_handler_(consumer.node, unreachable(consumer));
}

// Of the copy at which an engine stands; not known of one that is free in what it does first.
std::uint64_t FakeKernel::unreachable(const Consumer& consumer) {
  if (consumer.copy != nullptr) return 0;
  const auto generation = *amd::generation_of(model_.gfx);
  const std::uint64_t at = consumer.position & (consumer.bytes - 1);
  const auto* const dw = reinterpret_cast<const std::uint32_t*>(consumer.ring + at);
  const device::Packet* const packet = device::find_packet(generation, dw[0]);
  if (packet == nullptr || packet->kind != PacketKind::copy) return 0;
  const auto value = [&](FieldId id) {
    return device::field_value(device::field_of(*packet, generation, id), dw);
  };
  const core::WindowSet& windows = spaces_[consumer.node].windows;
  const std::uint64_t to = value(FieldId::destination);
  const bool reaches = windows.find(to, value(FieldId::bytes), true) != nullptr;
  return reaches ? value(FieldId::source) : to;
}

void FakeKernel::on_fault(FaultHandler handler) {
  const std::lock_guard lock(mutex_);
  fault_handler_ = std::move(handler);
}

void FakeKernel::lose(const void* base, int node) {
  const std::lock_guard lock(mutex_);
  Object* const object = object_at(reinterpret_cast<std::uint64_t>(base));
  if (object == nullptr) return;
  object->mapped.erase(node);
  refresh_windows(node);
}

} // namespace ferry::test
