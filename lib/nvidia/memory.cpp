// SPDX-License-Identifier: MIT
#include "lib/nvidia/memory.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "lib/base/error.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/driver.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "lib/nvidia/shareable.hpp"

namespace ferry::nvidia {

namespace {

constexpr std::size_t kUnusedMappings = 64; // kept for plans to come

using core::ErrorKind;
using core::Failure;

CUdeviceptr address(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

template <class Value>
bool attribute(CUpointer_attribute which, const void* pointer, Value& value) noexcept {
  const Driver& d = driver();
  return d.missing.empty() && d.pointer_attribute(&value, which, address(pointer)) == CUDA_SUCCESS;
}

bool same_allocation(const Exported& a, const Exported& b) {
  return a.process == b.process && a.base == b.base && a.identity == b.identity;
}

bool overlap(const Exported& a, const Exported& b) {
  return a.process == b.process && a.base < b.base + b.bytes && b.base < a.base + a.bytes;
}

} // namespace

Kind kind_of(const void* pointer) noexcept {
  unsigned type = 0;
  if (pointer == nullptr || !attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer, type)) {
    return Kind::host;
  }
  if (type != CU_MEMORYTYPE_DEVICE) return Kind::host;
  unsigned managed = 0;
  attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer, managed);
  return managed != 0 ? Kind::managed : Kind::device;
}

int device_of(const void* pointer) {
  int ordinal = -1;
  if (attribute(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer, ordinal)) return ordinal;
  throw Failure(ErrorKind::buffer, fmt::format("{} is on no device", pointer));
}

namespace {

struct Allocation {
  std::uint64_t base;
  std::uint64_t bytes;
};

Allocation allocation_of(const void* pointer, std::uint64_t bytes) {
  CUdeviceptr base = 0;
  std::size_t length = 0;
  check_driver(driver().address_range(&base, &length, address(pointer)), "cuMemGetAddressRange");
  if (bytes <= length && address(pointer) - base <= length - bytes) return {base, length};
  throw Failure(
      ErrorKind::buffer,
      fmt::format(
          "{} bytes at {} reach beyond their allocation of {} bytes", bytes, pointer, length),
      "use one allocation for a buffer");
}

} // namespace

void check_range(const void* pointer, std::uint64_t bytes) {
  static_cast<void>(allocation_of(pointer, bytes));
}

Exported export_range(
    const void* pointer, std::uint64_t bytes, std::uint64_t process, Descriptor& kept) {
  const Allocation allocation = allocation_of(pointer, bytes);
  Exported out;
  out.pid = getpid();
  out.process = process;
  out.base = allocation.base;
  out.bytes = allocation.bytes;
  out.offset = address(pointer) - allocation.base;
  unsigned long long identity = 0;
  if (!attribute(CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer, identity)) {
    throw Failure(ErrorKind::buffer, fmt::format("{} has no identity", pointer));
  }
  out.identity = identity;
  unsigned legacy = 0;
  attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, pointer, legacy);
  if (legacy != 0) {
    hipIpcMemHandle_t handle;
    static_assert(sizeof handle == sizeof out.handle);
    void* const start = reinterpret_cast<void*>(out.base);
    check_runtime(hipIpcGetMemHandle(&handle, start), "cudaIpcGetMemHandle");
    std::memcpy(out.handle, &handle, sizeof handle);
    out.reach = Reach::direct;
    return out;
  }
  kept = export_shareable(driver(), out.base);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); // lets peers fetch it, where Yama asks
  out.descriptor = kept.get();
  out.reach = Reach::shareable;
  return out;
}

Mapping::Mapping(const Exported& from, int device, std::uint64_t process)
    : bytes_(from.bytes), device_(device) {
  if (from.process == process) {
    base_ = reinterpret_cast<char*>(from.base);
    return;
  }
  const DeviceScope scope(device);
  if (from.reach == Reach::shareable) {
    base_ = reinterpret_cast<char*>(
        map_shareable(driver(), from.pid, from.descriptor, from.bytes, device));
    reach_ = Reach::shareable;
    return;
  }
  hipIpcMemHandle_t handle;
  std::memcpy(&handle, from.handle, sizeof handle);
  void* base = nullptr;
  check_runtime(
      hipIpcOpenMemHandle(&base, handle, hipIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
  base_ = static_cast<char*>(base);
  reach_ = Reach::direct;
}

Mapping::~Mapping() {
  if (reach_ == Reach::direct) {
    hipIpcCloseMemHandle(base_);
  } else if (reach_ == Reach::shareable) {
    unmap_shareable(driver(), address(base_), bytes_);
  }
}

std::shared_ptr<Mapping> MappingCache::open(
    const Exported& from, int device, std::uint64_t process) {
  const std::lock_guard lock(mutex_);
  for (auto i = entries_.begin(); i != entries_.end(); ++i) {
    if (i->device != device || !same_allocation(i->key, from)) continue;
    entries_.splice(entries_.begin(), entries_, i);
    return i->mapping;
  }
  evict(from);
  auto mapping = std::make_shared<Mapping>(from, device, process);
  entries_.push_front({from, device, mapping});
  return mapping;
}

// What lies where something else lies now is gone at the peer. Held ones go with their holders.
void MappingCache::evict(const Exported& coming) {
  std::size_t unused = 0;
  for (auto i = entries_.begin(); i != entries_.end();) {
    const bool held = i->mapping.use_count() > 1;
    const bool stale = overlap(i->key, coming) && !same_allocation(i->key, coming);
    if (!held) ++unused;
    const bool goes = stale || (!held && unused > kUnusedMappings);
    i = goes ? entries_.erase(i) : std::next(i);
  }
}

std::size_t MappingCache::size() {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

DeviceScope::DeviceScope(int device) {
  int current = -1;
  check_runtime(hipGetDevice(&current), "cudaGetDevice");
  if (current == device) return;
  check_runtime(hipSetDevice(device), "cudaSetDevice");
  before_ = current;
}

DeviceScope::~DeviceScope() {
  if (before_ >= 0) hipSetDevice(before_);
}

} // namespace ferry::nvidia
