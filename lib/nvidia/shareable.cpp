// SPDX-License-Identifier: MIT
#include "lib/nvidia/shareable.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/base/error.hpp"
#include "lib/nvidia/check.hpp"

namespace ferry::nvidia {

namespace {

// The descriptor `fd` of process `pid`, here.
Descriptor fetch_descriptor(int pid, int fd) {
  const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  Descriptor got(
      process.get() < 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), fd, 0)));
  if (got.get() >= 0) return got;
  throw core::Failure(
      core::ErrorKind::other,
      fmt::format("the descriptor of process {}: {}", pid, std::strerror(errno)),
      "allow pidfd_getfd (kernel.yama.ptrace_scope, container seccomp)");
}

} // namespace

Descriptor export_shareable(const Driver& driver, std::uint64_t base) {
  CUmemGenericAllocationHandle handle = 0;
  check_driver(
      driver.retain_handle(&handle, reinterpret_cast<void*>(base)), "cuMemRetainAllocationHandle");
  int fd = -1;
  const int code = driver.export_handle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  driver.release(handle);
  check_driver(code, "cuMemExportToShareableHandle");
  return Descriptor(fd);
}

std::uint64_t map_shareable(
    const Driver& driver, int pid, int descriptor, std::uint64_t bytes, int device) {
  const Descriptor fd = fetch_descriptor(pid, descriptor);
  CUmemGenericAllocationHandle handle = 0;
  void* const shared = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd.get()));
  check_driver(
      driver.import_handle(&handle, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
      "cuMemImportFromShareableHandle");
  CUdeviceptr at = 0;
  int code = driver.reserve(&at, bytes, 0, 0, 0);
  if (code == CUDA_SUCCESS) {
    code = driver.map(at, bytes, 0, handle, 0);
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const bool mapped = code == CUDA_SUCCESS;
    if (mapped) code = driver.set_access(at, bytes, &access, 1);
    if (mapped && code != CUDA_SUCCESS) driver.unmap(at, bytes);
    if (code != CUDA_SUCCESS) driver.unreserve(at, bytes);
  }
  driver.release(handle); // the mapping keeps the memory
  check_driver(code, "cuMemMap");
  return at;
}

void unmap_shareable(const Driver& driver, std::uint64_t at, std::uint64_t bytes) noexcept {
  driver.unmap(at, bytes);
  driver.unreserve(at, bytes);
}

} // namespace ferry::nvidia
