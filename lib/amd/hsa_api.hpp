// SPDX-License-Identifier: MIT
#pragma once

// The part of the ROCm runtime that Ferry uses, looked up at run time: nothing of Ferry is linked
// to it, and releases differ in what they export. Own prototypes, for the same reason.

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/amd/hip_modules.hpp"

namespace ferry::amd {

namespace hsa {

using Status = int; // 0: success
struct Agent {
  std::uint64_t handle = 0;
  bool operator==(const Agent&) const = default;
};
struct Pool {
  std::uint64_t handle = 0;
};
struct Signal {
  std::uint64_t handle = 0;
};
struct IpcHandle {
  std::uint32_t words[8] = {};
  bool operator==(const IpcHandle&) const = default;
};
// What the runtime reports about a GPU by itself.
struct Event {
  std::int32_t type = 0;
  Agent agent;
  std::uint64_t address = 0; // of a memory fault
  std::uint32_t reasons = 0;
};
inline constexpr std::int32_t kMemoryFault = 0;
inline constexpr std::int32_t kHardwareException = 1; // the address is not one
using EventHandler = Status (*)(const Event*, void* data);
struct VmemHandle {
  std::uint64_t handle = 0;
};
struct VmemAccess {
  int permissions = 0;
  Agent agent;
};
struct PointerInfo {
  std::uint32_t size = sizeof(PointerInfo);
  std::uint32_t type = 0;
  void* agent_base = nullptr;
  void* host_base = nullptr;
  std::size_t bytes = 0;
  void* user_data = nullptr;
  Agent owner;
  std::uint32_t global_flags = 0;
};

inline constexpr int kAgentDevice = 17; // its answer: 0 CPU, 1 GPU
inline constexpr int kAgentDriverNode = 0xa004;
inline constexpr std::uint32_t kDeviceGpu = 1;
inline constexpr int kPoolSegment = 0;
inline constexpr int kPoolFlags = 1;
inline constexpr std::uint32_t kSegmentGlobal = 0;
inline constexpr std::uint32_t kPoolFine = 2;
inline constexpr std::uint32_t kPoolCoarse = 4;
inline constexpr std::uint32_t kPoolExtendedFine = 8;
inline constexpr std::uint32_t kAllocateUncached = 1u << 3;
inline constexpr std::uint32_t kPointerHsa = 1;
inline constexpr std::uint32_t kPointerIpc = 4;
inline constexpr std::uint32_t kPointerVmem = 6;
inline constexpr int kReadWrite = 3;

} // namespace hsa

// Memory that a program maps by itself: hipMemCreate and hipMemMap, or the same of HSA.
struct VmemApi {
  hsa::Status (*retain)(hsa::VmemHandle*, void* address) = nullptr;
  hsa::Status (*release)(hsa::VmemHandle) = nullptr;
  hsa::Status (*export_file)(int* file, hsa::VmemHandle, std::uint64_t flags) = nullptr;
  hsa::Status (*import_file)(int file, hsa::VmemHandle*) = nullptr;
  hsa::Status (*reserve)(void**, std::size_t, std::uint64_t address, std::uint64_t flags) = nullptr;
  hsa::Status (*free_range)(void*, std::size_t) = nullptr;
  hsa::Status (*map)(void*, std::size_t, std::size_t offset, hsa::VmemHandle, std::uint64_t flags) =
      nullptr;
  hsa::Status (*unmap)(void*, std::size_t) = nullptr;
  hsa::Status (*set_access)(void*, std::size_t, const hsa::VmemAccess*, std::size_t) = nullptr;

  [[nodiscard]] bool complete() const {
    return retain != nullptr && release != nullptr && export_file != nullptr &&
           import_file != nullptr && reserve != nullptr && free_range != nullptr &&
           map != nullptr && unmap != nullptr && set_access != nullptr;
  }
};

struct HsaApi {
  hsa::Status (*init)() = nullptr;
  hsa::Status (*iterate_agents)(hsa::Status (*)(hsa::Agent, void*), void*) = nullptr;
  hsa::Status (*agent_get_info)(hsa::Agent, int, void*) = nullptr;
  hsa::Status (*iterate_pools)(hsa::Agent, hsa::Status (*)(hsa::Pool, void*), void*) = nullptr;
  hsa::Status (*pool_get_info)(hsa::Pool, int, void*) = nullptr;
  hsa::Status (*pool_allocate)(hsa::Pool, std::size_t, std::uint32_t, void**) = nullptr;
  hsa::Status (*pool_free)(void*) = nullptr;
  hsa::Status (*allow_access)(std::uint32_t, const hsa::Agent*, const std::uint32_t*, const void*) =
      nullptr;
  hsa::Status (*pointer_info)(
      const void*, hsa::PointerInfo*, void* (*)(std::size_t), std::uint32_t*,
      hsa::Agent**) = nullptr;
  hsa::Status (*ipc_create)(void*, std::size_t, hsa::IpcHandle*) = nullptr;
  hsa::Status (*ipc_attach)(
      const hsa::IpcHandle*, std::size_t, std::uint32_t, const hsa::Agent*, void**) = nullptr;
  hsa::Status (*ipc_detach)(void*) = nullptr;
  hsa::Status (*memory_copy)(void*, const void*, std::size_t) = nullptr;
  hsa::Status (*signal_create)(std::int64_t, std::uint32_t, const hsa::Agent*, hsa::Signal*) =
      nullptr;
  hsa::Status (*signal_destroy)(hsa::Signal) = nullptr;
  std::int64_t (*signal_load)(hsa::Signal) = nullptr;
  void (*signal_store)(hsa::Signal, std::int64_t) = nullptr;
  hsa::Status (*async_copy)(
      void*, hsa::Agent, const void*, hsa::Agent, std::size_t, std::uint32_t, const hsa::Signal*,
      hsa::Signal) = nullptr;
  // Newer releases only.
  hsa::Status (*async_copy_on_engine)(
      void*, hsa::Agent, const void*, hsa::Agent, std::size_t, std::uint32_t, const hsa::Signal*,
      hsa::Signal, std::uint32_t, bool) = nullptr;
  // Masks of engines for copies between two agents: best for their link, and idle now.
  hsa::Status (*preferred_engines)(hsa::Agent destination, hsa::Agent source, std::uint32_t* mask) =
      nullptr;
  hsa::Status (*free_engines)(hsa::Agent destination, hsa::Agent source, std::uint32_t* mask) =
      nullptr;
  hsa::Status (*on_event)(hsa::EventHandler, void* data) = nullptr;
  VmemApi vmem;
};

// HIP, if the program uses it: what the layer below has no notion of.
struct HipApi {
  // hipPointerGetAttribute
  int (*pointer_attribute)(void* answer, int attribute, void* pointer) = nullptr;
  // hipLaunchHostFunc
  int (*launch_host_function)(void* stream, void (*)(void*), void* data) = nullptr;
  // hipStreamIsCapturing
  int (*is_capturing)(void* stream, int* status) = nullptr;
  // hipMemGetAddressRange
  int (*address_range)(void** base, std::size_t* bytes, void* pointer) = nullptr;
  HipModules modules;

  static constexpr int kBufferId = 7;
};

// The library of this process or of the machine. False, with a reason, when it is not there or
// lacks something that has no substitute.
[[nodiscard]] bool load_hsa(HsaApi& api, std::string& why);
// Only what the program has loaded already; empty otherwise.
[[nodiscard]] HipApi find_hip();

} // namespace ferry::amd
