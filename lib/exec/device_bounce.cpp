// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>

#include "lib/base/error.hpp"
#include "lib/exec/device_memory.hpp"
#include "lib/memory/heap.hpp"

namespace ferry::core {
namespace {

// The bytes that a call touches of one buffer, relative to its address.
struct Range {
  std::int64_t low = std::numeric_limits<std::int64_t>::max();
  std::int64_t high = std::numeric_limits<std::int64_t>::min();

  void add(std::int64_t displacement, const Layout& layout) {
    if (layout.bytes() == 0) return;
    low = std::min(low, displacement + layout.lower());
    high = std::max(high, displacement + layout.upper());
  }
};

Range reduction_range(const CollectiveDesc& desc) {
  std::uint64_t bytes = 0;
  for (const std::uint64_t count : desc.reduction->counts) {
    bytes += count * desc.reduction->element_bytes;
  }
  return {0, static_cast<std::int64_t>(bytes)};
}

Range range_of(const CollectiveDesc& desc, int ranks, bool recv) {
  if (desc.reduction != nullptr) return reduction_range(desc);
  Range range;
  for (int rank = 0; rank < ranks; ++rank) {
    if (recv) {
      range.add(desc.recv_displacement(rank), desc.recv_block(rank));
    } else {
      range.add(desc.send_displacement(rank), desc.send_block(rank));
    }
  }
  return range;
}

DeviceBackend* backend_of(const void* buffer) {
  const DeviceKind kind = device_kind(buffer);
  return kind == DeviceKind::none ? nullptr : device_backend(kind, nullptr);
}

} // namespace

// Host memory of the heap, so that peers map it.
const void* DeviceBounce::replace(
    Side& side, const void* buffer, std::int64_t low, std::int64_t high) {
  side.backend = backend_of(buffer);
  if (side.backend == nullptr || low >= high) {
    side.backend = nullptr;
    return buffer;
  }
  side.device = const_cast<std::byte*>(static_cast<const std::byte*>(buffer)) + low;
  side.bytes = static_cast<std::uint64_t>(high - low);
  side.copy = static_cast<std::byte*>(Heap::instance().allocate(side.bytes));
  return side.copy - low;
}

std::unique_ptr<DeviceBounce> DeviceBounce::make(const CollectiveDesc& desc, int rank, int ranks) {
  if (device_kind(desc) == DeviceKind::none) return nullptr;
  std::unique_ptr<DeviceBounce> bounce(new DeviceBounce);
  bounce->host_ = desc;
  CollectiveDesc& host = bounce->host_;
  const bool shared = desc.send == desc.recv;
  const bool broadcast = desc.operation == Operation::broadcast;
  const Range in = range_of(desc, ranks, true);
  const Range out = range_of(desc, ranks, false);
  if (shared) {
    const std::int64_t low = std::min(in.low, out.low);
    const std::int64_t high = std::max(in.high, out.high);
    host.recv = const_cast<void*>(bounce->replace(bounce->recv_, desc.recv, low, high));
    host.send = host.recv;
  } else {
    host.send = bounce->replace(bounce->send_, desc.send, out.low, out.high);
    host.recv = const_cast<void*>(bounce->replace(bounce->recv_, desc.recv, in.low, in.high));
  }
  bounce->send_.loads = true;
  bounce->recv_.loads = shared || !desc.recv_plain() || !desc.own_block;
  bounce->recv_.stores = !broadcast || rank != desc.root;
  return bounce;
}

DeviceBounce::~DeviceBounce() {
  for (Side* side : {&send_, &recv_}) {
    if (side->copy != nullptr) Heap::instance().release(side->copy);
  }
}

void DeviceBounce::load() {
  for (Side* side : {&send_, &recv_}) {
    if (side->backend != nullptr && side->loads) {
      side->backend->copy(side->copy, side->device, side->bytes);
    }
  }
}

Status DeviceBounce::store() {
  if (recv_.backend == nullptr || !recv_.stores) return {};
  try {
    recv_.backend->copy(recv_.device, recv_.copy, recv_.bytes);
  } catch (const Failure& failure) {
    return failure.status();
  }
  return {};
}

} // namespace ferry::core
