// SPDX-License-Identifier: MIT
#include "lib/amd/runtime.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/base/error.hpp"

namespace ferry::amd {
namespace {

using core::ErrorKind;
using core::Failure;

void check(hsa::Status status, const std::string& what) {
  if (status == 0) return;
  throw Failure(
      ErrorKind::other,
      fmt::format(
          "the ROCm runtime cannot {} (status {:#x})", what, static_cast<unsigned>(status)));
}

} // namespace

Runtime::Runtime(const HsaApi& hsa, const HipApi& hip) : hsa_(hsa), hip_(hip), vmem_(hsa.vmem) {
  check(hsa_.init(), "start");
  std::vector<hsa::Agent> agents;
  const auto collect = [](hsa::Agent agent, void* all) {
    static_cast<std::vector<hsa::Agent>*>(all)->push_back(agent);
    return 0;
  };
  check(hsa_.iterate_agents(collect, &agents), "list its devices");
  for (const hsa::Agent agent : agents) add_agent(agent);
}

void Runtime::add_agent(hsa::Agent agent) {
  std::uint32_t kind = 0;
  std::uint32_t node = 0;
  check(hsa_.agent_get_info(agent, hsa::kAgentDevice, &kind), "describe a device");
  if (kind != hsa::kDeviceGpu) return;
  check(hsa_.agent_get_info(agent, hsa::kAgentDriverNode, &node), "tell the node of a device");
  Device device{agent, {}, {}, 0};
  std::vector<hsa::Pool> pools;
  const auto collect = [](hsa::Pool pool, void* all) {
    static_cast<std::vector<hsa::Pool>*>(all)->push_back(pool);
    return 0;
  };
  check(hsa_.iterate_pools(agent, collect, &pools), "list memory");
  for (const hsa::Pool pool : pools) add_pool(device, pool);
  agents_[static_cast<int>(node)] = device;
  nodes_[agent.handle] = static_cast<int>(node);
}

void Runtime::add_pool(Device& device, hsa::Pool pool) const {
  std::uint32_t segment = 0;
  std::uint32_t flags = 0;
  check(hsa_.pool_get_info(pool, hsa::kPoolSegment, &segment), "describe memory");
  if (segment != hsa::kSegmentGlobal) return;
  check(hsa_.pool_get_info(pool, hsa::kPoolFlags, &flags), "describe memory");
  if ((flags & hsa::kPoolCoarse) != 0) device.coarse = pool;
  const std::uint32_t fine = flags & (hsa::kPoolFine | hsa::kPoolExtendedFine);
  if (fine > device.fine_flags) {
    device.fine = pool;
    device.fine_flags = fine;
  }
}

const Runtime::Device& Runtime::device(int node) const {
  const auto found = agents_.find(node);
  if (found != agents_.end()) return found->second;
  throw Failure(ErrorKind::other, fmt::format("the ROCm runtime does not show node {}", node));
}

hsa::Agent Runtime::agent(int node) const {
  return device(node).agent;
}

std::optional<hsa::PointerInfo> Runtime::info(const void* pointer) const noexcept {
  hsa::PointerInfo info;
  if (pointer == nullptr) return std::nullopt;
  if (hsa_.pointer_info(pointer, &info, nullptr, nullptr, nullptr) != 0) return std::nullopt;
  const bool ours = info.type == hsa::kPointerHsa || info.type == hsa::kPointerIpc ||
                    info.type == hsa::kPointerVmem;
  if (!ours || !nodes_.contains(info.owner.handle)) return std::nullopt;
  return info;
}

std::uint32_t Runtime::engines(EngineQuestion question, int from, int to) const {
  if (question == nullptr || from == to || !sees(from) || !sees(to)) return 0;
  std::uint32_t mask = 0;
  return question(agent(to), agent(from), &mask) == 0 ? mask : 0;
}

bool Runtime::owns(const void* pointer) const noexcept {
  return info(pointer).has_value();
}

std::optional<Allocation> Runtime::find(const void* pointer) const noexcept {
  const auto found = info(pointer);
  if (!found) return std::nullopt;
  Allocation allocation;
  allocation.base = static_cast<std::byte*>(found->agent_base);
  allocation.bytes = found->bytes;
  allocation.node = nodes_.at(found->owner.handle);
  allocation.vmem = found->type == hsa::kPointerVmem;
  if (allocation.vmem && !find_range(allocation, pointer)) return std::nullopt;
  std::uint64_t id = 0;
  if (allocation.vmem) return allocation; // whether it is the same memory as before nobody can tell
  if (hip_.pointer_attribute != nullptr &&
      hip_.pointer_attribute(&id, HipApi::kBufferId, allocation.base) == 0) {
    allocation.id = id;
  }
  return allocation;
}

// Of memory that the program has mapped, HSA tells how long it is, and the pointer itself as its
// beginning. HIP knows better; without HIP only the beginning is found.
bool Runtime::find_range(Allocation& allocation, const void* pointer) const noexcept {
  if (hip_.address_range == nullptr) {
    hsa::VmemHandle memory;
    if (hsa_.vmem.retain == nullptr || hsa_.vmem.release == nullptr) return false;
    if (hsa_.vmem.retain(&memory, const_cast<void*>(pointer)) != 0) return false;
    (void)hsa_.vmem.release(memory);
    return true;
  }
  void* base = nullptr;
  std::size_t bytes = 0;
  if (hip_.address_range(&base, &bytes, const_cast<void*>(pointer)) != 0) return false;
  if (bytes != allocation.bytes) return false; // of something else
  allocation.base = static_cast<std::byte*>(base);
  const auto* const at = static_cast<const std::byte*>(pointer);
  return at >= allocation.base && at < allocation.base + bytes;
}

hsa::IpcHandle Runtime::share(const Allocation& allocation) const {
  if (allocation.vmem) return vmem_.share(allocation.base);
  hsa::IpcHandle handle;
  check(hsa_.ipc_create(allocation.base, allocation.bytes, &handle), "share an allocation");
  return handle;
}

std::byte* Runtime::open(
    const hsa::IpcHandle& handle, std::size_t bytes, int node, bool vmem) const {
  void* base = nullptr;
  const hsa::Agent mine = agent(node);
  if (vmem) return vmem_.open(handle, bytes, mine);
  check(hsa_.ipc_attach(&handle, bytes, 1, &mine, &base), "map an allocation of another process");
  return static_cast<std::byte*>(base);
}

void Runtime::close(std::byte* base) const noexcept {
  if (!vmem_.close(base)) (void)hsa_.ipc_detach(base);
}

void Runtime::allow(std::byte* base, std::size_t bytes, int node, bool vmem) const {
  const hsa::Agent other = agent(node);
  if (vmem) return vmem_.allow(base, bytes, other);
  check(hsa_.allow_access(1, &other, nullptr, base), "let one GPU reach memory of another");
}

// Uncached where the release knows the flag, else the finest memory, which is coherent.
std::byte* Runtime::allocate(int node, std::size_t bytes, MemoryKind kind) const {
  const Device& from = device(node);
  const bool uncached = kind == MemoryKind::uncached && from.fine_flags != 0;
  void* base = nullptr;
  hsa::Status status = 1;
  if (uncached) {
    status = hsa_.pool_allocate(from.fine, bytes, hsa::kAllocateUncached, &base);
    if (status != 0) status = hsa_.pool_allocate(from.fine, bytes, 0, &base);
  } else {
    status = hsa_.pool_allocate(from.coarse, bytes, 0, &base);
  }
  check(status, fmt::format("allocate {} bytes on node {}", bytes, node));
  auto* const memory = static_cast<std::byte*>(base);
  try {
    const std::vector<std::byte> zeros(std::min<std::size_t>(bytes, 1 << 16));
    for (std::size_t at = 0; at < bytes; at += zeros.size()) {
      copy(memory + at, zeros.data(), std::min(zeros.size(), bytes - at));
    }
  } catch (const Failure&) {
    release(memory);
    throw;
  }
  return memory;
}

void Runtime::release(std::byte* base) const noexcept {
  (void)hsa_.pool_free(base);
}

void Runtime::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  if (!owns(to) && !owns(from)) {
    std::memmove(to, from, bytes);
    return;
  }
  check(hsa_.memory_copy(to, from, bytes), fmt::format("copy {} bytes", bytes));
}

bool Runtime::captures(void* stream) const {
  int status = 0; // hipStreamCaptureStatusNone
  if (hip_.is_capturing == nullptr) return true;
  return hip_.is_capturing(stream, &status) != 0 || status != 0;
}

void Runtime::call_on_stream(void* stream, void (*function)(void*), void* data) const {
  if (hip_.launch_host_function == nullptr) {
    throw Failure(ErrorKind::argument, "there are no streams: this program does not use HIP");
  }
  const int error = hip_.launch_host_function(stream, function, data);
  if (error != 0) {
    throw Failure(ErrorKind::other, fmt::format("hipLaunchHostFunc fails with error {}", error));
  }
}

} // namespace ferry::amd
