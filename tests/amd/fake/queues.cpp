// SPDX-License-Identifier: MIT
// Queues of the modelled driver: what it accepts, and the doorbells.
#include <sys/mman.h>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "lib/amd/topology.hpp"
#include "tests/amd/fake/kernel.hpp"

namespace ferry::test {
namespace {

namespace kfd = amd::kfd;

constexpr std::size_t kPage = 4096;
constexpr int kNotSupported = 524; // the kernel's own number, which leaks out of this ioctl
constexpr std::size_t kDoorbellStep = 3; // doorbells do not come in a row
constexpr std::size_t kDoorbells = kfd::kDoorbellPage / sizeof(std::uint64_t);

} // namespace

// Since Linux 6.12 the driver wants these buffers to be mappings of their own.
bool FakeKernel::whole_mapping(std::uint64_t address, std::size_t bytes, int node) {
  const Object* const object = object_at(address);
  return object != nullptr && object->address == (address & ~std::uint64_t{kPage - 1}) &&
         object->bytes == bytes && object->mapped.contains(node);
}

int FakeKernel::pick_engine(const kfd::CreateQueue& argument, int node, std::uint32_t& engine) {
  const std::uint32_t all = model_.host_engines + model_.xgmi_engines;
  std::uint32_t first = 0;
  std::uint32_t end = model_.host_engines;
  if (argument.queue_type == kfd::kQueueSdmaXgmi) {
    first = model_.host_engines;
    end = all;
  } else if (argument.queue_type == kfd::kQueueSdmaByEngine) {
    if (settings_.faults.minor < 17) return -kNotSupported;
    if (argument.engine >= all) return -EINVAL;
    first = argument.engine;
    end = first + 1;
  } else if (argument.queue_type != kfd::kQueueSdma) {
    return -EINVAL;
  }
  for (engine = first; engine < end; ++engine) {
    if (settings_.faults.full.contains({node, engine})) continue;
    auto& used = machine_->queues[node][engine];
    if (used.fetch_add(1) < model_.queues_per_engine) return 0;
    used.fetch_sub(1);
  }
  return -ENOMEM;
}

int FakeKernel::create_queue(kfd::CreateQueue& argument) {
  const int node = node_of(argument.gpu_id);
  if (node < 0 || !spaces_.contains(node)) return -EINVAL;
  if (argument.percentage > kfd::kWholeQueue || argument.priority > kfd::kHighestPriority) {
    return -EINVAL;
  }
  if (!std::has_single_bit(argument.ring_bytes) || argument.ring_base == 0) return -EINVAL;
  const bool whole = whole_mapping(argument.ring_base, argument.ring_bytes, node) &&
                     argument.ring_base % kPage == 0 &&
                     whole_mapping(argument.wptr_address, kPage, node) &&
                     whole_mapping(argument.rptr_address, kPage, node);
  if (!whole) return -EINVAL;
  std::uint32_t engine = 0;
  const int error = pick_engine(argument, node, engine);
  if (error == 0) start_consumer(argument, node, engine);
  return error;
}

void FakeKernel::open_doorbells(Space& space) {
  if (space.doorbell_page != nullptr) return;
  space.doorbell_file = anonymous_file(kfd::kDoorbellPage);
  void* const page = ::mmap(
      nullptr, kfd::kDoorbellPage, PROT_READ | PROT_WRITE, MAP_SHARED, space.doorbell_file, 0);
  if (page == MAP_FAILED) std::abort();
  space.doorbell_page = static_cast<std::uint64_t*>(page);
}

void FakeKernel::start_consumer(kfd::CreateQueue& argument, int node, std::uint32_t engine) {
  Space& space = spaces_[node];
  open_doorbells(space);
  const std::size_t slot = ++space.doorbells * kDoorbellStep % kDoorbells;
  space.doorbell_page[slot] = 0;
  auto consumer = std::make_unique<Consumer>();
  consumer->node = node;
  consumer->engine = engine;
  consumer->ring = argument.ring_base;
  consumer->bytes = argument.ring_bytes;
  consumer->wptr = reinterpret_cast<const std::uint64_t*>(argument.wptr_address);
  consumer->rptr = reinterpret_cast<std::uint64_t*>(argument.rptr_address);
  consumer->doorbell = space.doorbell_page + slot;
  consumer->decoder.set_windows(&space.windows);
  consumer->decoder.set_generation(*amd::generation_of(model_.gfx));
  if (settings_.free_engines) {
    consumer->copy = std::make_unique<core::Queue>(consumer->bytes);
    consumer->copy->set_windows(&space.windows);
    consumer->copy->set_generation(*amd::generation_of(model_.gfx));
  }
  argument.queue_id = next_queue_++;
  argument.doorbell_offset =
      static_cast<std::uint64_t>(kDoorbellOffset) * static_cast<std::uint64_t>(node) + slot * 8;
  queues_[argument.queue_id] = std::move(consumer);
}

int FakeKernel::destroy_queue(const kfd::DestroyQueue& argument) {
  const auto found = queues_.find(argument.queue_id);
  if (found == queues_.end()) return -EINVAL;
  release_slot(*found->second);
  queues_.erase(found);
  return 0;
}

void FakeKernel::release_slot(const Consumer& consumer) {
  machine_->queues[consumer.node][consumer.engine].fetch_sub(1);
  core::Queue* const list[] = {consumer.copy.get()};
  if (consumer.copy != nullptr) engine_.retire(list);
}

} // namespace ferry::test
