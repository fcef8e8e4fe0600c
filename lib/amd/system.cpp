// SPDX-License-Identifier: MIT
#include "lib/amd/system.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>

namespace ferry::amd {
namespace {

constexpr int kInterruptions = 1000; // of one ioctl, before its error is handed on

class RealSystem final : public System {
 public:
  int open(const char* path, int flags) override { return result(::open(path, flags)); }
  int close(int descriptor) override { return result(::close(descriptor)); }
  int ioctl(int descriptor, unsigned long request, void* argument) override {
    int code = -EINTR;
    for (int i = 0; i < kInterruptions && (code == -EINTR || code == -EAGAIN); ++i) {
      code = result(::ioctl(descriptor, request, argument));
    }
    return code;
  }
  std::intptr_t mmap(
      void* address, std::size_t bytes, int protection, int flags, int descriptor,
      std::int64_t offset) override {
    void* const at = ::mmap(address, bytes, protection, flags, descriptor, offset);
    return at == MAP_FAILED ? -errno : reinterpret_cast<std::intptr_t>(at);
  }
  int munmap(void* address, std::size_t bytes) override { return result(::munmap(address, bytes)); }
  int descriptor_in_use(int descriptor) override;
  std::string sysfs() const override { return "/sys"; }

 private:
  static int result(int code) { return code < 0 ? -errno : code; }
};

// libdrm keeps one device for each GPU of a process. The ROCm runtime has opened it before, if it
// runs here at all, and then its descriptor is the one that may map memory.
int RealSystem::descriptor_in_use(int descriptor) {
  using Initialize = int (*)(int, std::uint32_t*, std::uint32_t*, void**);
  using Descriptor = int (*)(void*);
  void* const library = dlopen("libdrm_amdgpu.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return descriptor;
  const auto initialize = reinterpret_cast<Initialize>(dlsym(library, "amdgpu_device_initialize"));
  const auto descriptor_of = reinterpret_cast<Descriptor>(dlsym(library, "amdgpu_device_get_fd"));
  if (initialize == nullptr || descriptor_of == nullptr) return descriptor;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  void* device = nullptr; // kept: the descriptor lives as long as it
  if (initialize(descriptor, &major, &minor, &device) != 0) return descriptor;
  return descriptor_of(device);
}

} // namespace

System& real_system() {
  static RealSystem system;
  return system;
}

} // namespace ferry::amd
