// SPDX-License-Identifier: MIT
#include "lib/amd/kfd_queues.hpp"

#include <fmt/format.h>
#include <cerrno>
#include <utility>

#include "device/platform.hpp"
#include "lib/amd/patience.hpp"

namespace ferry::amd {
namespace {

constexpr std::size_t kCursorPage =
    4096; // the kernel wants wptr and rptr in a mapping of their own
constexpr std::size_t kLine = 64;
constexpr double kDrainSeconds = 2; // at the end of a queue

class KfdQueue final : public SdmaQueue {
 public:
  KfdQueue(KfdNode& node, std::uint32_t engine, std::size_t ring_bytes, std::uint32_t type)
      : SdmaQueue(node.node(), engine),
        node_(node),
        ring_(node.shared_memory(ring_bytes)),
        cursors_(node.shared_memory(kCursorPage)) {
    handle_.base = reinterpret_cast<std::uint32_t*>(ring_->base());
    handle_.bytes = ring_bytes;
    handle_.wptr = cursor(0);
    handle_.rptr = cursor(1);
    handle_.reserved = cursor(2);
    handle_.rptr_hint = cursor(3);
    create(type);
  }
  ~KfdQueue() override;

  const device::RingHandle& ring() const override { return handle_; }
  core::Status progress() override { return {}; }

 private:
  std::uint64_t* cursor(std::size_t index) {
    return reinterpret_cast<std::uint64_t*>(cursors_->base() + index * kLine);
  }
  void create(std::uint32_t type);
  void destroy() noexcept;

  KfdNode& node_;
  std::unique_ptr<KfdMemory> ring_;
  std::unique_ptr<KfdMemory> cursors_;
  std::uint32_t id_ = 0;
  device::RingHandle handle_;
};

void KfdQueue::create(std::uint32_t type) {
  kfd::CreateQueue create;
  create.ring_base = reinterpret_cast<std::uint64_t>(handle_.base);
  create.ring_bytes = static_cast<std::uint32_t>(handle_.bytes);
  create.wptr_address = reinterpret_cast<std::uint64_t>(handle_.wptr);
  create.rptr_address = reinterpret_cast<std::uint64_t>(handle_.rptr);
  create.gpu_id = node_.gpu_id();
  create.queue_type = type;
  create.percentage = kfd::kWholeQueue;
  create.priority = kfd::kHighestPriority;
  create.engine = type == kfd::kQueueSdmaByEngine ? engine() : 0;
  const int error = node_.driver().call(kfd::kCreateQueue, &create);
  if (error < 0) refuse("a " + name(), error);
  id_ = create.queue_id;
  try {
    handle_.doorbell = node_.doorbell(create.doorbell_offset);
  } catch (const core::Failure&) {
    destroy();
    throw;
  }
  // A queue need not begin at 0.
  const std::uint64_t begin = device::load_acquire(handle_.wptr);
  device::store_relaxed(handle_.reserved, begin);
  device::store_relaxed(handle_.rptr_hint, device::load_acquire(handle_.rptr));
}

void KfdQueue::destroy() noexcept {
  kfd::DestroyQueue destroy{id_, 0};
  (void)node_.driver().call(kfd::kDestroyQueue, &destroy);
}

// The kernel takes the queue from its engine; what is left in it will not run.
KfdQueue::~KfdQueue() {
  const auto look = [this] { return drained() ? core::Poll::ready : core::Poll::pending; };
  if (!given_up()) (void)wait_patiently([this] { return name(); }, kDrainSeconds, look);
  destroy();
}

class KfdQueues final : public QueueProvider {
 public:
  explicit KfdQueues(KfdDriver& driver) : driver_(driver) {}

  const char* name() const override { return "kfd"; }
  bool in_hardware() const override { return true; }
  bool chooses_engines() const override { return driver_.chooses_engines(); }
  device::Generation packets(const Gpu& gpu) const override {
    return generation_of(gpu.gfx).value_or(device::Generation::software);
  }
  std::string refuses(const Gpu& gpu) override;
  std::shared_ptr<std::uint64_t> control_page(const Gpu& gpu) override;
  std::unique_ptr<SdmaQueue> create(
      const Gpu& gpu, std::uint32_t engine, std::size_t ring_bytes) override;

 private:
  KfdDriver& driver_;
};

std::string KfdQueues::refuses(const Gpu& gpu) {
  const auto generation = generation_of(gpu.gfx);
  if (!generation) return fmt::format("the packets of {} are not known", gpu.name());
  if (gpu.engines() == 0) return fmt::format("{} has no SDMA engines", gpu.name());
  if (!device::generation_info(*generation).reliable_poll) {
    return fmt::format("polls of {} may end early", gfx_name(gpu.gfx));
  }
  return {};
}

std::shared_ptr<std::uint64_t> KfdQueues::control_page(const Gpu& gpu) {
  std::shared_ptr<KfdMemory> page = driver_.node(gpu).shared_memory(kCursorPage);
  auto* const words = reinterpret_cast<std::uint64_t*>(page->base());
  return {std::move(page), words};
}

// Before 1.17 the kernel picks an engine: one for links to other GPUs, where the GPU has such.
std::unique_ptr<SdmaQueue> KfdQueues::create(
    const Gpu& gpu, std::uint32_t engine, std::size_t ring_bytes) {
  KfdNode& node = driver_.node(gpu);
  if (driver_.chooses_engines() && engine != kAnyEngine) {
    return std::make_unique<KfdQueue>(node, engine, ring_bytes, kfd::kQueueSdmaByEngine);
  }
  const std::uint32_t type = gpu.xgmi_engines > 0 ? kfd::kQueueSdmaXgmi : kfd::kQueueSdma;
  return std::make_unique<KfdQueue>(node, kAnyEngine, ring_bytes, type);
}

} // namespace

std::unique_ptr<QueueProvider> make_kfd_queues(KfdDriver& driver) {
  return std::make_unique<KfdQueues>(driver);
}

} // namespace ferry::amd
