// SPDX-License-Identifier: MIT
#include "apps/ferry-tune/gpus.hpp"

#include <dlfcn.h>

#include <stdexcept>

#include <fmt/format.h>

namespace ferry::tune {
namespace {

constexpr const char* kRemedy =
    "run it on a machine with AMD GPUs, with the libraries of ROCm on LD_LIBRARY_PATH";

void* open_hip() {
  for (const char* name :
       {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}) {
    if (void* const handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return handle;
  }
  throw std::runtime_error(fmt::format("no AMD GPU: {}; {}", dlerror(), kRemedy));
}

template <class Function>
void look_up(void* hip, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(hip, name));
  if (function == nullptr) throw std::runtime_error(fmt::format("this HIP has no {}", name));
}

void check(int code, const char* call) {
  if (code != 0) throw std::runtime_error(fmt::format("{}: error {} of HIP", call, code));
}

} // namespace

Gpus::Gpus() {
  void* const hip = open_hip();
  int (*get_count)(int*) = nullptr;
  look_up(hip, get_count, "hipGetDeviceCount");
  look_up(hip, set_device_, "hipSetDevice");
  look_up(hip, malloc_, "hipMalloc");
  look_up(hip, free_, "hipFree");
  look_up(hip, get_name_, "hipDeviceGetName");
  look_up(hip, get_version_, "hipRuntimeGetVersion");
  const int code = get_count(&count_);
  if (code != 0 || count_ == 0) {
    throw std::runtime_error(
        fmt::format("no AMD GPU: HIP finds none (error {}); {}", code, kRemedy));
  }
}

std::string Gpus::describe() const {
  char name[256] = {};
  int version = 0;
  check(get_name_(name, sizeof name - 1, 0), "hipDeviceGetName");
  check(get_version_(&version), "hipRuntimeGetVersion");
  return fmt::format("{} x {}, HIP {}", count_, name, version);
}

void Gpus::use(int gpu) const {
  check(set_device_(gpu), "hipSetDevice");
}

Gpus::Memory Gpus::allocate(std::size_t bytes) const {
  void* memory = nullptr;
  check(malloc_(&memory, bytes), "hipMalloc");
  return Memory(memory, Free{free_});
}

} // namespace ferry::tune
