// SPDX-License-Identifier: MIT
#include "lib/nvidia/memory.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/error.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/driver.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"

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

// The descriptor `fd` of process `pid`, here.
Descriptor fetch_descriptor(int pid, int fd) {
  const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  Descriptor got(
      process.get() < 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), fd, 0)));
  if (got.get() >= 0) return got;
  throw Failure(
      ErrorKind::other, fmt::format("the descriptor of process {}: {}", pid, std::strerror(errno)),
      "allow pidfd_getfd (kernel.yama.ptrace_scope, container seccomp)");
}

bool same_allocation(const Exported& a, const Exported& b) {
  return a.process == b.process && a.base == b.base && a.identity == b.identity;
}

bool overlap(const Exported& a, const Exported& b) {
  return a.process == b.process && a.base < b.base + b.bytes && b.base < a.base + a.bytes;
}

} // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

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
  const Driver& d = driver();
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
  CUmemGenericAllocationHandle handle = 0;
  check_driver(
      d.retain_handle(&handle, reinterpret_cast<void*>(out.base)), "cuMemRetainAllocationHandle");
  int fd = -1;
  const int code = d.export_handle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  d.release(handle);
  check_driver(code, "cuMemExportToShareableHandle");
  kept = Descriptor(fd);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); // lets peers fetch it, where Yama asks
  out.descriptor = fd;
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
    open_shareable(from, device);
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

void Mapping::open_shareable(const Exported& from, int device) {
  const Driver& d = driver();
  const Descriptor fd = fetch_descriptor(from.pid, from.descriptor);
  CUmemGenericAllocationHandle handle = 0;
  void* const shared = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd.get()));
  check_driver(
      d.import_handle(&handle, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
      "cuMemImportFromShareableHandle");
  CUdeviceptr at = 0;
  int code = d.reserve(&at, bytes_, 0, 0, 0);
  if (code == CUDA_SUCCESS) {
    code = d.map(at, bytes_, 0, handle, 0);
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const bool mapped = code == CUDA_SUCCESS;
    if (mapped) code = d.set_access(at, bytes_, &access, 1);
    if (mapped && code != CUDA_SUCCESS) d.unmap(at, bytes_);
    if (code != CUDA_SUCCESS) d.unreserve(at, bytes_);
  }
  d.release(handle); // the mapping keeps the memory
  check_driver(code, "cuMemMap");
  base_ = reinterpret_cast<char*>(at);
  reach_ = Reach::shareable;
}

Mapping::~Mapping() {
  if (reach_ == Reach::direct) {
    hipIpcCloseMemHandle(base_);
  } else if (reach_ == Reach::shareable) {
    driver().unmap(address(base_), bytes_);
    driver().unreserve(address(base_), bytes_);
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
