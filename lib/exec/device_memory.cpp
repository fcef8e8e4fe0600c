// SPDX-License-Identifier: MIT
#include "lib/exec/device_memory.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "lib/config/config.hpp"

namespace ferry::core {
namespace {

struct Module {
  const char* file; // our module
  std::vector<const char*> runtimes; // one of them is in the process once its GPUs are in use
  std::once_flag once;
  std::atomic<DeviceBackend*> backend{nullptr};
  std::string why;
};

Module& module_of(DeviceKind kind) {
  static Module nvidia{"libferry-nvidia.so", {"libcuda.so.1"}, {}, {}, {}};
  static Module amd{
      "libferry-amd.so",
      {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"},
      {},
      {},
      {}};
  return kind == DeviceKind::nvidia ? nvidia : amd;
}

// The folder that this library was loaded from, with a slash at its end.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0) return {};
  const std::string path = info.dli_fname;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

void* open_module(const char* file, std::string& why) {
  std::string folder = config().module_path.text;
  if (!folder.empty()) folder += '/';
  for (const std::string& place : {folder.empty() ? own_folder() : folder, std::string()}) {
    // Local: the module brings parts of this library of its own.
    if (void* handle = dlopen((place + file).c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    if (why.empty()) why = dlerror();
  }
  return nullptr;
}

void load(Module& module) {
  void* handle = open_module(module.file, module.why);
  if (handle == nullptr) return;
  const auto entry = reinterpret_cast<DeviceBackendEntry>(dlsym(handle, "ferry_device_backend"));
  const char* why = nullptr;
  DeviceBackend* backend = entry != nullptr ? entry(&why) : nullptr;
  module.why = why != nullptr ? why : fmt::format("{} has no backend", module.file);
  module.backend.store(backend, std::memory_order_release);
}

bool runtime_loaded(const Module& module) noexcept {
  for (const char* library : module.runtimes) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    dlclose(handle);
    return true;
  }
  return false;
}

// Regions of host memory that were asked about while no GPU runtime was in the process. Device
// memory never takes the place of memory that the program used for messages before it had a GPU.
class HostCache {
 public:
  [[nodiscard]] bool holds(const void* pointer) const noexcept {
    return entry(pointer).load(std::memory_order_relaxed) == region(pointer);
  }
  void add(const void* pointer) noexcept {
    entry(pointer).store(region(pointer), std::memory_order_relaxed);
  }

 private:
  static constexpr int kRegionBits = 21;
  static constexpr std::size_t kEntries = 64;
  static std::uint64_t region(const void* pointer) noexcept {
    return (reinterpret_cast<std::uint64_t>(pointer) >> kRegionBits) + 1;
  }
  [[nodiscard]] std::atomic<std::uint64_t>& entry(const void* pointer) const noexcept {
    return entries_[region(pointer) % kEntries];
  }
  mutable std::array<std::atomic<std::uint64_t>, kEntries> entries_{};
};

HostCache& host_cache() {
  static HostCache cache;
  return cache;
}

std::atomic<bool> installed{false}; // a backend of a test

DeviceKind look_up(const void* pointer) noexcept {
  bool runtime = false;
  for (const DeviceKind kind : {DeviceKind::nvidia, DeviceKind::amd}) {
    Module& module = module_of(kind);
    const bool present = module.backend.load(std::memory_order_acquire) != nullptr;
    if (!present && !runtime_loaded(module)) continue;
    runtime = true;
    DeviceBackend* backend = device_backend(kind, nullptr);
    if (backend != nullptr && backend->owns(pointer)) return kind;
  }
  if (!runtime) host_cache().add(pointer);
  return DeviceKind::none;
}

} // namespace

DeviceBackend* device_backend(DeviceKind kind, std::string* why) {
  Module& module = module_of(kind);
  std::call_once(module.once, [&] {
    if (module.backend.load() == nullptr) load(module);
  });
  if (why != nullptr) *why = module.why;
  return module.backend.load(std::memory_order_acquire);
}

void install_device_backend(DeviceKind kind, DeviceBackend& backend) {
  module_of(kind).backend.store(&backend, std::memory_order_release);
  installed.store(true, std::memory_order_release);
}

bool may_have_gpu() noexcept {
  if (installed.load(std::memory_order_relaxed)) return true;
  constexpr std::array files = {"/dev/nvidiactl", "/dev/dxg", "/dev/kfd"};
  return std::any_of(
      files.begin(), files.end(), [](const char* file) { return access(file, F_OK) == 0; });
}

DeviceKind device_kind(const void* pointer) noexcept {
  if (pointer == nullptr) return DeviceKind::none;
  if (host_cache().holds(pointer) && !installed.load(std::memory_order_relaxed)) {
    return DeviceKind::none;
  }
  return look_up(pointer);
}

DeviceKind device_kind(const CollectiveDesc& desc) noexcept {
  const DeviceKind kind = device_kind(desc.send);
  return kind != DeviceKind::none || desc.recv == desc.send ? kind : device_kind(desc.recv);
}

} // namespace ferry::core
