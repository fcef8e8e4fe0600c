// SPDX-License-Identifier: MIT
#include "lib/amd/kfd_driver.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/error.hpp"

namespace ferry::amd {
namespace {

using core::ErrorKind;
using core::Failure;

constexpr const char* kDriverFile = "/dev/kfd";
constexpr std::uint32_t kOldestMajor = 1;
constexpr std::uint32_t kChoosingMinor = 17; // queues on an engine of choice
constexpr std::uint32_t kSharedMemory = kfd::kMemoryGtt | kfd::kMemoryWritable |
                                        kfd::kMemoryExecutable | kfd::kMemoryCoherent |
                                        kfd::kMemoryUncached | kfd::kMemoryNoSubstitute;
constexpr std::uint32_t kDoorbellMemory =
    kfd::kMemoryDoorbell | kfd::kMemoryWritable | kfd::kMemoryCoherent;
constexpr std::size_t kPage = 4096;

std::string access_remedy(int error) {
  const bool denied = error == -EACCES || error == -EPERM;
  return denied ? "let this user open /dev/kfd and /dev/dri/renderD* (groups video and render; in "
                  "a container, pass both devices)"
                : "";
}

} // namespace

void refuse(const std::string& what, int error, std::string remedy) {
  const ErrorKind kind = error == -ENOMEM ? ErrorKind::no_memory : ErrorKind::other;
  throw Failure(core::Status{
      kind, fmt::format("the AMD driver refuses {}: {}", what, std::strerror(-error)),
      std::move(remedy)});
}

KfdMemory::KfdMemory(KfdNode& node, std::size_t bytes, std::uint32_t flags)
    : node_(node), bytes_(bytes) {
  reserve();
  kfd::AllocateMemory allocate;
  allocate.address = reinterpret_cast<std::uint64_t>(base_);
  allocate.bytes = bytes;
  allocate.gpu_id = node.gpu_id();
  allocate.flags = flags;
  int error = node.driver().call(kfd::kAllocateMemory, &allocate);
  if (error < 0) {
    release();
    refuse(fmt::format("{} bytes of memory", bytes), error);
  }
  allocated_ = true;
  handle_ = allocate.handle;
  map_offset_ = static_cast<std::int64_t>(allocate.map_offset);
  std::uint32_t gpu_id = node.gpu_id();
  kfd::MapMemory map{handle_, reinterpret_cast<std::uint64_t>(&gpu_id), 1, 0};
  error = node.driver().call(kfd::kMapMemory, &map);
  if (error < 0) {
    release();
    refuse("to map memory to a GPU", error);
  }
  mapped_ = true;
}

KfdMemory::~KfdMemory() {
  release();
}

// Address range without memory, within what the GPU can address.
void KfdMemory::reserve() {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const std::intptr_t at = node_.driver().system().mmap(nullptr, bytes_, PROT_NONE, kFlags, -1, 0);
  if (at < 0 && at > -static_cast<std::intptr_t>(kPage)) {
    refuse(fmt::format("an address range of {} bytes", bytes_), static_cast<int>(at));
  }
  base_ = reinterpret_cast<std::byte*>(at);
  if (node_.holds(base_, bytes_)) return;
  release();
  refuse("addresses of this process for its GPU", -ERANGE);
}

void KfdMemory::map_host(int descriptor, std::int64_t offset) {
  const std::intptr_t at = node_.driver().system().mmap(
      base_, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, offset);
  if (at != reinterpret_cast<std::intptr_t>(base_)) {
    refuse("to map memory to the host", static_cast<int>(at));
  }
}

void KfdMemory::release() noexcept {
  KfdDriver& driver = node_.driver();
  if (mapped_) {
    std::uint32_t gpu_id = node_.gpu_id();
    kfd::MapMemory map{handle_, reinterpret_cast<std::uint64_t>(&gpu_id), 1, 0};
    (void)driver.call(kfd::kUnmapMemory, &map);
  }
  if (base_ != nullptr) driver.system().munmap(base_, bytes_);
  if (allocated_) {
    kfd::FreeMemory free{handle_};
    (void)driver.call(kfd::kFreeMemory, &free);
  }
  mapped_ = allocated_ = false;
  base_ = nullptr;
}

KfdDriver::KfdDriver(System& system) : system_(system) {
  descriptor_ = system_.open(kDriverFile, O_RDWR | O_CLOEXEC);
  if (descriptor_ < 0) refuse("to open /dev/kfd", descriptor_, access_remedy(descriptor_));
  const int error = call(kfd::kGetVersion, &version_);
  if (error == 0 && version_.major == kOldestMajor) return;
  system_.close(descriptor_);
  if (error < 0) refuse("to tell its version", error);
  refuse(fmt::format("interface {}.{}", version_.major, version_.minor), -EPROTONOSUPPORT);
}

KfdDriver::~KfdDriver() {
  nodes_.clear();
  system_.close(descriptor_);
}

bool KfdDriver::chooses_engines() const {
  return version_.minor >= kChoosingMinor;
}

int KfdDriver::call(unsigned long request, void* argument) {
  return system_.ioctl(descriptor_, request, argument);
}

KfdNode& KfdDriver::node(const Gpu& gpu) {
  const std::lock_guard lock(mutex_);
  auto& node = nodes_[gpu.node];
  if (node == nullptr) node = std::make_unique<KfdNode>(*this, gpu);
  return *node;
}

KfdNode::KfdNode(KfdDriver& driver, const Gpu& gpu)
    : driver_(driver), node_(gpu.node), gpu_id_(gpu.gpu_id) {
  acquire(gpu);
  try {
    read_aperture();
  } catch (const Failure&) {
    driver_.system().close(own_descriptor_);
    throw;
  }
}

KfdNode::~KfdNode() {
  doorbells_.clear();
  driver_.system().close(own_descriptor_);
}

// A process has one address space for each GPU, tied to the file by which it was acquired first.
void KfdNode::acquire(const Gpu& gpu) {
  const std::string file = fmt::format("/dev/dri/renderD{}", gpu.render_minor);
  own_descriptor_ = driver_.system().open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (own_descriptor_ < 0) {
    refuse("to open " + file, own_descriptor_, access_remedy(own_descriptor_));
  }
  descriptor_ = own_descriptor_;
  kfd::AcquireVm acquire{static_cast<std::uint32_t>(own_descriptor_), gpu_id_};
  const int error = driver_.call(kfd::kAcquireVm, &acquire);
  if (error == 0) return;
  if (error == -EBUSY) {
    shared_ = true;
    descriptor_ = driver_.system().descriptor_in_use(own_descriptor_);
    if (descriptor_ != own_descriptor_) return;
  }
  driver_.system().close(own_descriptor_);
  refuse(
      fmt::format("the address space of {}", gpu.name()), error,
      error == -EBUSY ? "another library of this process holds it: install libdrm_amdgpu.so.1, so "
                        "that it can be shared"
                      : "");
}

void KfdNode::read_aperture() {
  constexpr std::size_t kMostGpus = 256;
  std::array<kfd::Aperture, kMostGpus> apertures{};
  kfd::Apertures question{reinterpret_cast<std::uint64_t>(apertures.data()), kMostGpus, 0};
  const int error = driver_.call(kfd::kGetApertures, &question);
  if (error < 0) refuse("the address ranges of GPUs", error);
  for (std::size_t i = 0; i < question.count && i < kMostGpus; ++i) {
    if (apertures[i].gpu_id != gpu_id_) continue;
    lowest_ = apertures[i].gpuvm_base;
    highest_ = apertures[i].gpuvm_limit;
    return;
  }
  refuse(fmt::format("the address range of node {}", node_), -ENODEV);
}

bool KfdNode::holds(const void* base, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uint64_t>(base);
  return at >= lowest_ && bytes <= highest_ && at <= highest_ - bytes;
}

std::unique_ptr<KfdMemory> KfdNode::shared_memory(std::size_t bytes) {
  auto memory = std::make_unique<KfdMemory>(*this, bytes, kSharedMemory);
  memory->map_host(descriptor_, memory->map_offset());
  std::memset(memory->base(), 0, bytes);
  return memory;
}

// One address for both sides: the page is given to the GPU first, then mapped there for the host.
std::uint64_t* KfdNode::doorbell(std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t page = offset & ~std::uint64_t{kfd::kDoorbellPage - 1};
  auto& memory = doorbells_[page];
  if (memory == nullptr) {
    auto fresh = std::make_unique<KfdMemory>(*this, kfd::kDoorbellPage, kDoorbellMemory);
    fresh->map_host(driver_.descriptor(), static_cast<std::int64_t>(page));
    memory = std::move(fresh);
  }
  return reinterpret_cast<std::uint64_t*>(memory->base() + (offset - page));
}

} // namespace ferry::amd
