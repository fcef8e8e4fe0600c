// SPDX-License-Identifier: MIT
#include "lib/amd/vmem.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include "lib/base/error.hpp"

namespace ferry::amd {
namespace {

using core::ErrorKind;
using core::Failure;

void check(hsa::Status status, const char* what) {
  if (status == 0) return;
  throw Failure(
      ErrorKind::other,
      fmt::format(
          "the ROCm runtime cannot {} (status {:#x})", what, static_cast<unsigned>(status)));
}

// A descriptor of another process, here.
int fetch(std::uint32_t process, std::uint32_t file) {
  const auto pid = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  const auto got = pid < 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_getfd, pid, file, 0));
  const int error = errno;
  if (pid >= 0) ::close(pid);
  if (got >= 0) return got;
  throw Failure(
      ErrorKind::other,
      fmt::format("the descriptor of process {} for its memory: {}", process, std::strerror(error)),
      "allow pidfd_getfd (kernel.yama.ptrace_scope, container seccomp)");
}

} // namespace

VmemShares::~VmemShares() {
  for (const auto& [number, file] : exports_) ::close(file);
}

void VmemShares::require() const {
  if (api_.complete()) return;
  throw Failure(
      ErrorKind::other, "this ROCm runtime cannot share memory of hipMemCreate",
      "use hipMalloc, or ROCm 6.0 or later");
}

hsa::IpcHandle VmemShares::share(std::byte* base) {
  require();
  hsa::VmemHandle memory;
  int file = -1;
  check(api_.retain(&memory, base), "find the memory behind a mapping");
  const hsa::Status status = api_.export_file(&file, memory, 0);
  (void)api_.release(memory);
  check(status, "export memory of hipMemCreate, which needs a handle type of POSIX descriptors");
  const std::lock_guard lock(mutex_);
  exports_[++shared_] = file;
  hsa::IpcHandle handle;
  handle.words[0] = static_cast<std::uint32_t>(getpid());
  handle.words[1] = static_cast<std::uint32_t>(file);
  handle.words[2] = static_cast<std::uint32_t>(shared_);
  handle.words[3] = static_cast<std::uint32_t>(shared_ >> 32);
  return handle;
}

void VmemShares::withdraw(const hsa::IpcHandle& handle) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = exports_.find(handle.words[2] | std::uint64_t{handle.words[3]} << 32);
  if (found == exports_.end()) return;
  ::close(found->second);
  exports_.erase(found);
}

void VmemShares::allow(void* base, std::size_t bytes, hsa::Agent agent) const {
  require();
  const hsa::VmemAccess access{hsa::kReadWrite, agent};
  check(api_.set_access(base, bytes, &access, 1), "let a GPU reach memory of hipMemCreate");
}

std::byte* VmemShares::open(const hsa::IpcHandle& handle, std::size_t bytes, hsa::Agent agent) {
  require();
  const int file = fetch(handle.words[0], handle.words[1]);
  Import import;
  import.bytes = bytes;
  const hsa::Status imported = api_.import_file(file, &import.handle);
  ::close(file);
  check(imported, "import memory of hipMemCreate from another process");
  void* range = nullptr;
  bool mapped = false;
  try {
    check(api_.reserve(&range, bytes, 0, 0), "reserve addresses");
    check(api_.map(range, bytes, 0, import.handle, 0), "map memory of another process");
    mapped = true;
    allow(range, bytes, agent);
  } catch (const Failure&) {
    if (mapped) (void)api_.unmap(range, bytes);
    if (range != nullptr) (void)api_.free_range(range, bytes);
    (void)api_.release(import.handle);
    throw;
  }
  auto* const base = static_cast<std::byte*>(range);
  const std::lock_guard lock(mutex_);
  imports_[base] = import;
  return base;
}

bool VmemShares::close(std::byte* base) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = imports_.find(base);
  if (found == imports_.end()) return false;
  const Import import = found->second;
  imports_.erase(found);
  (void)api_.unmap(base, import.bytes);
  (void)api_.free_range(base, import.bytes);
  (void)api_.release(import.handle);
  return true;
}

} // namespace ferry::amd
