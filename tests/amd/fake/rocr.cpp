// SPDX-License-Identifier: MIT
#include "tests/amd/fake/rocr.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "device/platform.hpp"

namespace ferry::test {
namespace {

namespace kfd = amd::kfd;
namespace hsa = amd::hsa;

constexpr int kError = 0x1000;
constexpr int kInvalidAllocation = 0x100f;
constexpr std::uint64_t kAgentBase = 0xa0000;
constexpr std::size_t kPage = 4096;

FakeRocr* current = nullptr;

std::uint64_t number(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

} // namespace

FakeRocr& FakeRocr::of_process() {
  return *current;
}

int FakeRocr::node_of(hsa::Agent agent) {
  return static_cast<int>(agent.handle - kAgentBase);
}

hsa::Agent FakeRocr::agent_of(int node) {
  return {kAgentBase + static_cast<std::uint64_t>(node)};
}

FakeRocr::FakeRocr(FakeKernel& kernel, RocrSettings settings)
    : kernel_(kernel), settings_(std::move(settings)) {
  if (current != nullptr) std::abort();
  current = this;
  driver_ = kernel_.open("/dev/kfd", O_RDWR);
  for (int node = kCpuNodes; node < kCpuNodes + kernel_.model().gpus; ++node) {
    const std::string file = "/dev/dri/renderD" + std::to_string(render_minor_of(node));
    render_[node] = kernel_.open(file.c_str(), O_RDWR);
    kfd::AcquireVm acquire{static_cast<std::uint32_t>(render_[node]), gpu_id_of(node)};
    (void)kernel_.ioctl(driver_, kfd::kAcquireVm, &acquire);
  }
  copier_ = std::thread([this] { run_copies(); });
  kernel_.on_fault([this](int node, std::uint64_t address) { report(node, address); });
}

FakeRocr::~FakeRocr() {
  kernel_.on_fault(nullptr);
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_all();
  copier_.join();
  for (const auto& [node, descriptor] : render_) kernel_.close(descriptor);
  kernel_.close(driver_);
  current = nullptr;
}

std::byte* FakeRocr::hip_malloc(int node, std::size_t bytes) {
  return allocate(node, bytes, next_id_++);
}

void FakeRocr::hip_free(void* base) {
  (void)release(base);
}

std::byte* FakeRocr::allocate(int node, std::size_t bytes, std::uint64_t id) {
  Record record;
  record.bytes = (bytes + kPage - 1) / kPage * kPage;
  const std::intptr_t at = kernel_.mmap(
      nullptr, record.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  record.base = reinterpret_cast<std::byte*>(at);
  record.node = node;
  record.id = id;
  kfd::AllocateMemory allocate;
  allocate.address = number(record.base);
  allocate.bytes = record.bytes;
  allocate.gpu_id = gpu_id_of(node);
  allocate.flags = kfd::kMemoryVram | kfd::kMemoryWritable | kfd::kMemoryPublic;
  std::uint32_t gpu = allocate.gpu_id;
  if (kernel_.ioctl(driver_, kfd::kAllocateMemory, &allocate) != 0) return nullptr;
  record.handle = allocate.handle;
  kfd::MapMemory map{record.handle, number(&gpu), 1, 0};
  if (kernel_.ioctl(driver_, kfd::kMapMemory, &map) != 0) return nullptr;
  const std::lock_guard lock(mutex_);
  records_[number(record.base)] = record;
  return record.base;
}

int FakeRocr::release(void* base) {
  Record record;
  {
    const std::lock_guard lock(mutex_);
    const auto found = records_.find(number(base));
    if (found == records_.end()) return kInvalidAllocation;
    record = found->second;
    records_.erase(found);
  }
  for (int node = kCpuNodes; node < kCpuNodes + kernel_.model().gpus; ++node) {
    std::uint32_t gpu = gpu_id_of(node);
    kfd::MapMemory map{record.handle, number(&gpu), 1, 0};
    (void)kernel_.ioctl(driver_, kfd::kUnmapMemory, &map);
  }
  kfd::FreeMemory free{record.handle};
  (void)kernel_.ioctl(driver_, kfd::kFreeMemory, &free);
  return kernel_.munmap(record.base, record.bytes) == 0 ? 0 : kError;
}

std::optional<FakeRocr::Record> FakeRocr::record_of(const void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto after = records_.upper_bound(number(pointer));
  if (after == records_.begin()) return std::nullopt;
  const Record& record = std::prev(after)->second;
  if (number(pointer) - number(record.base) >= record.bytes) return std::nullopt;
  return record;
}

// Found again through /proc; the inode tells whether it is still the same file.
int FakeRocr::create_handle(void* base, std::size_t bytes, hsa::IpcHandle* handle) {
  const auto record = record_of(base);
  if (!record || record->base != base || record->bytes != bytes) return kInvalidAllocation;
  if (record->vmem) return kInvalidAllocation;
  const int file = kernel_.file_of(base);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) return kError;
  handle->words[0] = static_cast<std::uint32_t>(getpid());
  handle->words[1] = static_cast<std::uint32_t>(file);
  handle->words[2] = static_cast<std::uint32_t>(status.st_ino);
  handle->words[3] = static_cast<std::uint32_t>(bytes >> 12);
  return 0;
}

int FakeRocr::attach(const hsa::IpcHandle& handle, std::size_t bytes, int node, void** base) {
  if (settings_.no_attach || bytes != std::size_t{handle.words[3]} << 12) return kError;
  if (handle.words[0] == static_cast<std::uint32_t>(getpid())) return kError;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [at, record] : records_) {
      // Some releases fail here, others map it twice: nobody should ask.
      if (record.imported && record.node == node && record.ipc == handle) return kError;
    }
  }
  const std::string path =
      "/proc/" + std::to_string(handle.words[0]) + "/fd/" + std::to_string(handle.words[1]);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  const bool same = file >= 0 && fstat(file, &status) == 0 &&
                    static_cast<std::uint32_t>(status.st_ino) == handle.words[2];
  Record record;
  if (same) record.base = kernel_.import_memory(file, bytes, node);
  if (file >= 0) ::close(file);
  if (record.base == nullptr) return kError;
  record.bytes = bytes;
  record.node = node;
  record.imported = true;
  record.ipc = handle;
  const std::lock_guard lock(mutex_);
  records_[number(record.base)] = record;
  ++attachments_;
  *base = record.base;
  return 0;
}

int FakeRocr::detach(void* base) {
  const auto record = record_of(base);
  if (!record || !record->imported) return kInvalidAllocation;
  kernel_.forget(base);
  const std::lock_guard lock(mutex_);
  records_.erase(number(base));
  return 0;
}

void FakeRocr::push(const Copy& copy) {
  {
    const std::lock_guard lock(mutex_);
    copies_.push(copy);
  }
  work_.notify_one();
}

void FakeRocr::run_copies() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return ending_ || !copies_.empty(); });
    if (copies_.empty()) return;
    const Copy copy = copies_.front();
    copies_.pop();
    lock.unlock();
    auto* const signal = reinterpret_cast<std::uint64_t*>(copy.signal);
    if (copy.fails) {
      device::store_release(signal, ~std::uint64_t{0});
    } else {
      std::memcpy(copy.to, copy.from, copy.bytes);
      device::fetch_add(signal, ~std::uint64_t{0});
    }
    lock.lock();
  }
}

struct RocrFunctions {
  static int node_of(hsa::Agent agent) { return FakeRocr::node_of(agent); }
  static int init() { return 0; }
  static int iterate_agents(int (*visit)(hsa::Agent, void*), void* data) {
    for (int node = 0; node < kCpuNodes + current->kernel_.model().gpus; ++node) {
      if (current->settings_.hidden.contains(node)) continue;
      const int status = visit({kAgentBase + static_cast<std::uint64_t>(node)}, data);
      if (status != 0) return status;
    }
    return 0;
  }
  static int agent_get_info(hsa::Agent agent, int attribute, void* answer) {
    const int node = node_of(agent);
    std::uint32_t value = 0;
    if (attribute == hsa::kAgentDevice) {
      value = node >= kCpuNodes ? hsa::kDeviceGpu : 0;
    } else if (attribute == hsa::kAgentDriverNode) {
      value = static_cast<std::uint32_t>(node);
    } else {
      return kError;
    }
    std::memcpy(answer, &value, sizeof value);
    return 0;
  }
  static int iterate_pools(hsa::Agent agent, int (*visit)(hsa::Pool, void*), void* data) {
    for (const std::uint64_t kind : {1, 2}) {
      const int status = visit({agent.handle * 4 + kind}, data);
      if (status != 0) return status;
    }
    return 0;
  }
  static int pool_get_info(hsa::Pool pool, int attribute, void* answer) {
    const std::uint32_t flags = pool.handle % 4 == 1 ? hsa::kPoolCoarse : hsa::kPoolFine;
    const std::uint32_t value = attribute == hsa::kPoolFlags ? flags : hsa::kSegmentGlobal;
    std::memcpy(answer, &value, sizeof value);
    return 0;
  }
  static int pool_allocate(hsa::Pool pool, std::size_t bytes, std::uint32_t, void** base) {
    *base = current->allocate(node_of({pool.handle / 4}), bytes, 0);
    return *base != nullptr ? 0 : kError;
  }
  static int pool_free(void* base) { return current->release(base); }
  static int allow_access(
      std::uint32_t count, const hsa::Agent* agents, const std::uint32_t*, const void* base) {
    for (std::uint32_t i = 0; i < count; ++i) current->kernel_.allow(base, node_of(agents[i]));
    return 0;
  }
  static int pointer_info(
      const void* pointer, hsa::PointerInfo* info, void* (*)(std::size_t), std::uint32_t*,
      hsa::Agent**) {
    const auto record = current->record_of(pointer);
    info->type = 0;
    if (!record) return 0;
    info->type = record->imported ? hsa::kPointerIpc : hsa::kPointerHsa;
    info->agent_base = record->base;
    info->bytes = record->bytes;
    // The real one answers with the pointer that it is asked about.
    if (record->vmem) info->type = hsa::kPointerVmem;
    if (record->vmem) info->agent_base = const_cast<void*>(pointer);
    info->owner = {kAgentBase + static_cast<std::uint64_t>(record->node)};
    return 0;
  }
  static int ipc_create(void* base, std::size_t bytes, hsa::IpcHandle* handle) {
    return current->create_handle(base, bytes, handle);
  }
  static int ipc_attach(
      const hsa::IpcHandle* handle, std::size_t bytes, std::uint32_t count,
      const hsa::Agent* agents, void** base) {
    return count == 1 ? current->attach(*handle, bytes, node_of(*agents), base) : kError;
  }
  static int ipc_detach(void* base) { return current->detach(base); }
  static int on_event(hsa::EventHandler handler, void* data) {
    const std::lock_guard lock(current->mutex_);
    current->listeners_.emplace_back(handler, data);
    return 0;
  }
  static int memory_copy(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    return 0;
  }
  static int signal_create(
      std::int64_t value, std::uint32_t, const hsa::Agent*, hsa::Signal* signal) {
    signal->handle = number(new std::uint64_t(static_cast<std::uint64_t>(value)));
    return 0;
  }
  static int signal_destroy(hsa::Signal signal) {
    delete reinterpret_cast<std::uint64_t*>(signal.handle);
    return 0;
  }
  static std::int64_t signal_load(hsa::Signal signal) {
    return static_cast<std::int64_t>(
        device::load_acquire(reinterpret_cast<std::uint64_t*>(signal.handle)));
  }
  static void signal_store(hsa::Signal signal, std::int64_t value) {
    device::store_release(
        reinterpret_cast<std::uint64_t*>(signal.handle), static_cast<std::uint64_t>(value));
  }
  static int async_copy_on_engine(
      void* to, hsa::Agent, const void* from, hsa::Agent source, std::size_t bytes, std::uint32_t,
      const hsa::Signal*, hsa::Signal signal, std::uint32_t engine, bool) {
    {
      const std::lock_guard lock(current->mutex_);
      current->masks_used_.insert(engine);
    }
    bool fails = false;
    for (const NodeEngine& failing : current->settings_.failing) {
      fails |= failing.first == node_of(source) && (engine >> failing.second & 1) != 0;
    }
    current->push(
        {static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes, signal.handle,
         fails});
    return 0;
  }
  static int preferred_engines(hsa::Agent destination, hsa::Agent source, std::uint32_t* mask) {
    const std::uint32_t told = current->settings_.preferred;
    *mask = told != 0
                ? told
                : recommended_mask(current->kernel_.model(), node_of(source), node_of(destination));
    return 0;
  }
  static int free_engines(hsa::Agent, hsa::Agent source, std::uint32_t* mask) {
    if (node_of(source) < kCpuNodes) return kError;
    const GpuModel& model = current->kernel_.model();
    *mask = (1u << (model.host_engines + model.xgmi_engines)) - 1;
    return 0;
  }
  static int async_copy(
      void* to, hsa::Agent, const void* from, hsa::Agent, std::size_t bytes, std::uint32_t,
      const hsa::Signal*, hsa::Signal signal) {
    current->push(
        {static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes, signal.handle,
         false});
    return 0;
  }
};

amd::HsaApi FakeRocr::hsa() const {
  using F = RocrFunctions;
  amd::HsaApi api;
  api.init = F::init;
  api.iterate_agents = F::iterate_agents;
  api.agent_get_info = F::agent_get_info;
  api.iterate_pools = F::iterate_pools;
  api.pool_get_info = F::pool_get_info;
  api.pool_allocate = F::pool_allocate;
  api.pool_free = F::pool_free;
  api.allow_access = F::allow_access;
  api.pointer_info = F::pointer_info;
  api.ipc_create = F::ipc_create;
  api.ipc_attach = F::ipc_attach;
  api.ipc_detach = F::ipc_detach;
  api.memory_copy = F::memory_copy;
  api.signal_create = F::signal_create;
  api.signal_destroy = F::signal_destroy;
  api.signal_load = F::signal_load;
  api.signal_store = F::signal_store;
  api.async_copy = F::async_copy;
  api.on_event = F::on_event;
  if (settings_.knows_vmem) api.vmem = vmem();
  if (settings_.knows_engines) api.async_copy_on_engine = F::async_copy_on_engine;
  if (settings_.knows_preferred) {
    api.preferred_engines = F::preferred_engines;
    api.free_engines = F::free_engines;
  }
  return api;
}

} // namespace ferry::test
