// SPDX-License-Identifier: MIT
#include "lib/engine/cross_memory.hpp"

#include <sys/uio.h>

#include <cerrno>

namespace ferry::core {

namespace {

using Transfer =
    ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

// The kernel moves at most 2 GiB a call and stops short at the first page it cannot reach; asking
// again from there yields either more bytes or the reason.
int transfer_all(
    Transfer transfer, int pid, char* local, std::uint64_t remote, std::uint64_t bytes) noexcept {
  for (std::uint64_t done = 0; done < bytes;) {
    const iovec here{local + done, bytes - done};
    const iovec there{reinterpret_cast<void*>(remote + done), bytes - done};
    const ssize_t moved = transfer(pid, &here, 1, &there, 1, 0);
    if (moved < 0) return errno;
    if (moved == 0) return EFAULT;
    done += static_cast<std::uint64_t>(moved);
  }
  return 0;
}

} // namespace

int read_process(int pid, void* local, std::uint64_t remote, std::uint64_t bytes) noexcept {
  return transfer_all(&process_vm_readv, pid, static_cast<char*>(local), remote, bytes);
}

// process_vm_writev only reads the local side, although iovec cannot say so.
int write_process(int pid, std::uint64_t remote, const void* local, std::uint64_t bytes) noexcept {
  char* const from = static_cast<char*>(const_cast<void*>(local));
  return transfer_all(&process_vm_writev, pid, from, remote, bytes);
}

} // namespace ferry::core
