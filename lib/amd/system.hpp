// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ferry::amd {

// The kernel as this backend sees it: every call that reaches the driver goes through here, so that
// tests can put a modelled driver in its place. Results below 0 are errors, -errno.
class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  [[nodiscard]] virtual int open(const char* path, int flags) = 0;
  virtual int close(int descriptor) = 0;
  [[nodiscard]] virtual int ioctl(int descriptor, unsigned long request, void* argument) = 0;
  // Address, or -errno.
  [[nodiscard]] virtual std::intptr_t mmap(
      void* address, std::size_t bytes, int protection, int flags, int descriptor,
      std::int64_t offset) = 0;
  virtual int munmap(void* address, std::size_t bytes) = 0;
  // The descriptor by which another library of this process uses the same render node, or
  // `descriptor` itself: a process has one address space for each GPU, tied to the first.
  [[nodiscard]] virtual int descriptor_in_use(int descriptor) = 0;
  // What stands for /sys.
  [[nodiscard]] virtual std::string sysfs() const = 0;
};

// The one of this machine.
[[nodiscard]] System& real_system();

} // namespace ferry::amd
