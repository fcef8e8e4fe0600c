// SPDX-License-Identifier: MIT
#include "lib/amd/hsa_queues.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <new>

#include "device/packet_table.hpp"
#include "device/platform.hpp"
#include "lib/amd/patience.hpp"
#include "lib/engine/queue.hpp"

namespace ferry::amd {
namespace {

using device::FieldId;
using device::Generation;
using device::Packet;
using device::PacketKind;

constexpr Generation kPackets = Generation::software;
constexpr int kTurn = 64; // packets of one call
constexpr std::size_t kPage = 4096;

class HsaQueue final : public SdmaQueue {
 public:
  HsaQueue(const Runtime& runtime, const Gpu& gpu, std::uint32_t engine, std::size_t ring_bytes);
  ~HsaQueue() override;

  const device::RingHandle& ring() const override { return memory_.handle(); }
  core::Status progress() override;

 private:
  enum class Outcome { done, blocked, failed };

  Outcome step(const Packet& packet, const std::uint32_t* dw);
  Outcome copy(const Packet& packet, const std::uint32_t* dw);
  [[nodiscard]] bool copies_landed();
  [[nodiscard]] hsa::Agent agent_of(const void* memory) const {
    const auto found = runtime_.find(memory);
    return found ? runtime_.agent(found->node) : agent_;
  }
  Outcome fail(std::string cause);

  static std::uint64_t value(const Packet& packet, const std::uint32_t* dw, FieldId id) {
    return device::field_value(device::field_of(packet, kPackets, id), dw);
  }

  const Runtime& runtime_;
  const hsa::Agent agent_;
  core::HostRing memory_;
  std::uint64_t position_ = 0;
  hsa::Signal copying_; // counts the copies that are under way
  core::Status status_;
};

HsaQueue::HsaQueue(
    const Runtime& runtime, const Gpu& gpu, std::uint32_t engine, std::size_t ring_bytes)
    : SdmaQueue(gpu.node, engine),
      runtime_(runtime),
      agent_(runtime.agent(gpu.node)),
      memory_(ring_bytes) {
  if (runtime_.api().signal_create(0, 0, nullptr, &copying_) != 0) {
    throw core::Failure(core::ErrorKind::no_memory, "the ROCm runtime has no signal left");
  }
}

// The signal must outlive the copies that lower it.
HsaQueue::~HsaQueue() {
  constexpr double kSeconds = 2;
  const auto look = [this] {
    const bool under_way = runtime_.api().signal_load(copying_) > 0; // below 0: it failed
    return under_way ? core::Poll::pending : core::Poll::ready;
  };
  if (wait_patiently([this] { return name(); }, kSeconds, look).ok())
    runtime_.api().signal_destroy(copying_);
}

core::Status HsaQueue::progress() {
  const device::RingHandle& ring = memory_.handle();
  // Pairs with the release of the doorbell.
  const std::uint64_t doorbell = device::load_acquire(ring.doorbell);
  for (int turn = 0; turn < kTurn && position_ != doorbell && status_.ok(); ++turn) {
    const std::uint32_t* const dw = ring.base + (position_ & (ring.bytes - 1)) / 4;
    const Packet* const packet = device::find_packet(kPackets, dw[0]);
    if (packet == nullptr) {
      fail(fmt::format("unknown packet {:#010x}", dw[0]));
      break;
    }
    if (step(*packet, dw) != Outcome::done) break;
    const std::uint64_t bytes = 4 * device::packet_dwords(*packet, kPackets, dw);
    position_ = std::min(doorbell, position_ + bytes);
    // Pairs with the acquire of whoever reuses the space.
    device::store_release(ring.rptr, position_);
  }
  return status_;
}

HsaQueue::Outcome HsaQueue::step(const Packet& packet, const std::uint32_t* dw) {
  switch (packet.kind) {
    case PacketKind::nop:
      return Outcome::done;
    case PacketKind::copy:
      return copy(packet, dw);
    case PacketKind::poll64: {
      const auto* const word =
          reinterpret_cast<const std::uint64_t*>(value(packet, dw, FieldId::word));
      const bool holds = device::load_acquire(word) >= value(packet, dw, FieldId::reference);
      return holds ? Outcome::done : Outcome::blocked;
    }
    case PacketKind::atomic:
    case PacketKind::fence:
      break;
    default:
      return fail(fmt::format("{} is not carried out", packet.name));
  }
  if (!copies_landed()) return status_.ok() ? Outcome::blocked : Outcome::failed;
  const std::uint64_t word = value(packet, dw, FieldId::word);
  const std::uint64_t operand = value(packet, dw, FieldId::value);
  if (packet.kind == PacketKind::fence) {
    device::store_release(
        reinterpret_cast<std::uint32_t*>(word), static_cast<std::uint32_t>(operand));
  } else {
    device::fetch_add(reinterpret_cast<std::uint64_t*>(word), operand);
  }
  return Outcome::done;
}

// Each copy begins when those before it have landed.
HsaQueue::Outcome HsaQueue::copy(const Packet& packet, const std::uint32_t* dw) {
  if (!copies_landed()) return status_.ok() ? Outcome::blocked : Outcome::failed;
  auto* const to = reinterpret_cast<void*>(value(packet, dw, FieldId::destination));
  const auto* const from = reinterpret_cast<const void*>(value(packet, dw, FieldId::source));
  const std::uint64_t bytes = value(packet, dw, FieldId::bytes);
  const hsa::Agent destination = agent_of(to);
  const hsa::Agent source = agent_of(from);
  const HsaApi& api = runtime_.api();
  api.signal_store(copying_, 1);
  const bool choose = engine() != kAnyEngine && api.async_copy_on_engine != nullptr;
  const hsa::Status status =
      choose ? api.async_copy_on_engine(
                   to, destination, from, source, bytes, 0, nullptr, copying_, 1u << engine(), true)
             : api.async_copy(to, destination, from, source, bytes, 0, nullptr, copying_);
  if (status == 0) return Outcome::done;
  api.signal_store(copying_, 0);
  return fail(fmt::format("the ROCm runtime refuses a copy (status {:#x})", unsigned(status)));
}

bool HsaQueue::copies_landed() {
  const std::int64_t left = runtime_.api().signal_load(copying_);
  if (left < 0 && status_.ok()) fail("a copy of the ROCm runtime failed");
  return left == 0;
}

HsaQueue::Outcome HsaQueue::fail(std::string cause) {
  status_ = {
      core::ErrorKind::bad_packet,
      fmt::format("{} offset {:#x}: {}", name(), position_, cause),
      {}};
  return Outcome::failed;
}

class HsaQueues final : public QueueProvider {
 public:
  explicit HsaQueues(const Runtime& runtime) : runtime_(runtime) {}

  const char* name() const override { return "hsa"; }
  bool in_hardware() const override { return false; }
  device::Generation packets(const Gpu& /*gpu*/) const override { return kPackets; }
  bool chooses_engines() const override { return runtime_.api().async_copy_on_engine != nullptr; }
  std::uint32_t preferred_engines(const Gpu& from, const Gpu& to) const override {
    return runtime_.engines(runtime_.api().preferred_engines, from.node, to.node);
  }
  std::string refuses(const Gpu& gpu) override {
    if (runtime_.sees(gpu.node)) return {};
    return fmt::format("the ROCm runtime does not show {}", gpu.name());
  }
  std::shared_ptr<std::uint64_t> control_page(const Gpu& gpu) override;
  std::unique_ptr<SdmaQueue> create(
      const Gpu& gpu, std::uint32_t engine, std::size_t ring_bytes) override {
    return std::make_unique<HsaQueue>(runtime_, gpu, engine, ring_bytes);
  }

 private:
  const Runtime& runtime_;
};

std::shared_ptr<std::uint64_t> HsaQueues::control_page(const Gpu& /*gpu*/) {
  void* const page = ::operator new (kPage, std::align_val_t{kPage});
  std::memset(page, 0, kPage);
  const auto release = [](std::uint64_t* at) { ::operator delete (at, std::align_val_t{kPage}); };
  return {static_cast<std::uint64_t*>(page), release};
}

} // namespace

std::unique_ptr<QueueProvider> make_hsa_queues(const Runtime& runtime) {
  return std::make_unique<HsaQueues>(runtime);
}

} // namespace ferry::amd
