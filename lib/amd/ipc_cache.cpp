// SPDX-License-Identifier: MIT
#include "lib/amd/ipc_cache.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace ferry::amd {
namespace {

constexpr std::size_t kIdleMappings = 64; // kept although no plan uses them

} // namespace

const ProcessToken& own_token() {
  static const ProcessToken token = [] {
    std::random_device random;
    const auto word = [&] { return std::uint64_t{random()} << 32 | random(); };
    return ProcessToken{word(), word()};
  }();
  return token;
}

// An identity of 0 is none: such an allocation is exported anew each time.
SharedAllocation IpcCache::offer(const Allocation& allocation) {
  const auto base = reinterpret_cast<std::uint64_t>(allocation.base);
  const std::lock_guard lock(mutex_);
  const auto found = offered_.find(base);
  if (found != offered_.end() && allocation.id != 0 && found->second.id == allocation.id &&
      found->second.bytes == allocation.bytes) {
    return found->second;
  }
  SharedAllocation shared;
  shared.process = own_token();
  shared.base = base;
  shared.bytes = allocation.bytes;
  shared.id = allocation.id;
  shared.node = allocation.node;
  shared.vmem = allocation.vmem ? 1 : 0;
  shared.handle = runtime_.share(allocation);
  offered_[base] = shared;
  return shared;
}

void IpcCache::withdraw(const SharedAllocation& allocation) noexcept {
  if (allocation.vmem != 0) runtime_.withdraw(allocation.handle);
}

Mapping IpcCache::open(const SharedAllocation& allocation, int node) {
  if (allocation.process == own_token()) {
    auto* const base = reinterpret_cast<std::byte*>(allocation.base);
    if (allocation.node != node) {
      runtime_.allow(base, allocation.bytes, node, allocation.vmem != 0);
    }
    return {base, [](std::byte*) {}};
  }
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(opened_.begin(), opened_.end(), [&](const Entry& entry) {
    return entry.node == node && entry.allocation == allocation;
  });
  if (found != opened_.end()) {
    std::rotate(found, found + 1, opened_.end());
    return opened_.back().mapping;
  }
  evict(allocation);
  std::byte* const base =
      runtime_.open(allocation.handle, allocation.bytes, node, allocation.vmem != 0);
  const auto close = [&runtime = runtime_](std::byte* at) { runtime.close(at); };
  opened_.push_back({allocation, node, Mapping(base, close)});
  return opened_.back().mapping;
}

// What lies where `fresh` lies has been freed by its owner. Of the others that no plan uses, those
// go that nobody could recognise, and the oldest when there are many.
void IpcCache::evict(const SharedAllocation& fresh) {
  const auto freed = [&](const Entry& entry) {
    const SharedAllocation& old = entry.allocation;
    return old.process == fresh.process && old != fresh && old.base < fresh.base + fresh.bytes &&
           fresh.base < old.base + old.bytes;
  };
  std::erase_if(opened_, freed);
  std::size_t unused = 0;
  for (const Entry& entry : opened_) unused += entry.mapping.use_count() == 1 ? 1 : 0;
  std::erase_if(opened_, [&](const Entry& entry) {
    if (entry.mapping.use_count() > 1) return false;
    if (entry.allocation.id != 0 && unused < kIdleMappings) return false;
    --unused;
    return true;
  });
}

std::size_t IpcCache::opened() const {
  const std::lock_guard lock(mutex_);
  return opened_.size();
}

} // namespace ferry::amd
