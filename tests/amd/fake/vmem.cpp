// SPDX-License-Identifier: MIT
// Memory of the modelled runtime that a program maps by itself, and its way to other processes.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <memory>

#include "tests/amd/fake/rocr.hpp"

namespace ferry::test {
namespace {

namespace hsa = amd::hsa;

constexpr int kError = 0x1000;
constexpr int kInvalidAllocation = 0x100f;

std::uint64_t number(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

// What a handle stands for: a file of its own.
struct Memory {
  int file = -1;
  std::size_t bytes = 0;
  explicit Memory(int from) : file(dup(from)) {
    struct stat status {};
    if (fstat(file, &status) == 0) bytes = static_cast<std::size_t>(status.st_size);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::close(file); }
};

Memory& memory_of(hsa::VmemHandle handle) {
  return *reinterpret_cast<Memory*>(handle.handle);
}

} // namespace

std::byte* FakeRocr::hip_map(int node, std::size_t bytes) {
  std::byte* const base = allocate(node, bytes, 0);
  const std::lock_guard lock(mutex_);
  if (base != nullptr) records_[number(base)].vmem = true;
  return base;
}

struct VmemFunctions {
  static FakeRocr& rocr() { return FakeRocr::of_process(); }

  // Only by the address at which a mapping begins.
  static int retain(hsa::VmemHandle* handle, void* address) {
    const auto record = rocr().record_of(address);
    if (!record || !record->vmem || record->base != address) return kInvalidAllocation;
    handle->handle = number(new Memory(rocr().kernel_.file_of(address)));
    return 0;
  }
  static int release(hsa::VmemHandle handle) {
    delete &memory_of(handle);
    return 0;
  }
  static int export_file(int* file, hsa::VmemHandle handle, std::uint64_t flags) {
    if (flags != 0) return kError;
    *file = dup(memory_of(handle).file);
    return *file >= 0 ? 0 : kError;
  }
  static int import_file(int file, hsa::VmemHandle* handle) {
    handle->handle = number(new Memory(file));
    return memory_of(*handle).bytes > 0 ? 0 : kError;
  }
  static int reserve(void** range, std::size_t bytes, std::uint64_t, std::uint64_t) {
    *range = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return *range != MAP_FAILED ? 0 : kError;
  }
  static int free_range(void*, std::size_t) { return 0; } // unmap() has done it
  static int map(
      void* range, std::size_t bytes, std::size_t offset, hsa::VmemHandle handle, std::uint64_t) {
    if (offset != 0 || bytes != memory_of(handle).bytes) return kError;
    const std::lock_guard lock(rocr().mutex_);
    rocr().ranges_[number(range)] = memory_of(handle).file;
    return 0;
  }
  static int unmap(void* range, std::size_t) {
    rocr().kernel_.forget(range);
    const std::lock_guard lock(rocr().mutex_);
    return rocr().ranges_.erase(number(range)) == 1 ? 0 : kInvalidAllocation;
  }
  // Nobody reaches what is mapped before this call.
  static int set_access(
      void* range, std::size_t bytes, const hsa::VmemAccess* access, std::size_t count) {
    if (count != 1 || access->permissions != hsa::kReadWrite) return kError;
    const int node = FakeRocr::node_of(access->agent);
    int file = -1;
    {
      const std::lock_guard lock(rocr().mutex_);
      const auto found = rocr().ranges_.find(number(range));
      if (found != rocr().ranges_.end()) file = found->second;
    }
    if (file >= 0) {
      return rocr().kernel_.import_memory(file, bytes, node, range) != nullptr ? 0 : kError;
    }
    const auto record = rocr().record_of(range);
    if (!record || !record->vmem) return kInvalidAllocation;
    rocr().kernel_.allow(range, node);
    return 0;
  }
};

amd::VmemApi FakeRocr::vmem() {
  using F = VmemFunctions;
  return {F::retain,     F::release, F::export_file, F::import_file, F::reserve,
          F::free_range, F::map,     F::unmap,       F::set_access};
}

std::size_t FakeRocr::mapped_ranges() {
  const std::lock_guard lock(mutex_);
  return ranges_.size();
}

} // namespace ferry::test
