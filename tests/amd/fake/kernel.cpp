// SPDX-License-Identifier: MIT
#include "tests/amd/fake/kernel.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "device/generation.hpp"
#include "lib/amd/topology.hpp"

namespace ferry::test {
namespace {

namespace kfd = amd::kfd;

constexpr std::size_t kPage = 4096;
constexpr std::int64_t kObjectOffset = std::int64_t{1} << 32; // per object, on a render node

} // namespace

int anonymous_file(std::size_t bytes) {
  const int file = memfd_create("fake-gpu", MFD_CLOEXEC);
  if (file < 0) return -1;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
  ::close(file);
  return -1;
}

namespace {

template <class T>
T& as(std::byte* argument) {
  return *reinterpret_cast<T*>(argument);
}

std::uint64_t number(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

} // namespace

namespace {

core::ModelSettings freedom_of(const FakeSettings& settings) {
  core::ModelSettings freedom;
  freedom.seed = settings.seed;
  const auto generation = amd::generation_of(gpu_model(settings.model).gfx);
  freedom.early_polls = !device::generation_info(*generation).reliable_poll;
  return freedom;
}

} // namespace

FakeKernel::FakeKernel(FakeSettings settings)
    : settings_(std::move(settings)),
      model_(gpu_model(settings_.model)),
      random_(settings_.seed),
      engine_(freedom_of(settings_)) {
  const std::string state = settings_.folder + "/state";
  const int file = ::open(state.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(MachineState)) != 0) std::abort();
  void* const at =
      ::mmap(nullptr, sizeof(MachineState), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) std::abort();
  machine_ = static_cast<MachineState*>(at);
  ::close(file);
  engines_ = std::jthread([this](const std::stop_token& stop) { run_engines(stop); });
}

// What a process leaves behind ends with it.
FakeKernel::~FakeKernel() {
  engines_.request_stop();
  engines_.join();
  for (const auto& [id, queue] : queues_) release_slot(*queue);
  for (const auto& [handle, object] : objects_) {
    if (object.file >= 0) ::close(object.file);
  }
  for (const auto& [node, space] : spaces_) {
    if (space.doorbell_page != nullptr) ::munmap(space.doorbell_page, kfd::kDoorbellPage);
    if (space.doorbell_file >= 0) ::close(space.doorbell_file);
  }
  for (const auto& [descriptor, file] : files_) ::close(descriptor);
  ::munmap(machine_, sizeof(MachineState));
}

void FakeKernel::set_faults(const FakeFaults& faults) {
  const std::lock_guard lock(mutex_);
  settings_.faults = faults;
}

int FakeKernel::open(const char* path, int /*flags*/) {
  const std::lock_guard lock(mutex_);
  const std::string name = path;
  File file{FileKind::driver, -1};
  if (name == "/dev/kfd") {
    if (settings_.faults.open_error != 0) return -settings_.faults.open_error;
  } else {
    file.kind = FileKind::render;
    for (int node = kCpuNodes; node < kCpuNodes + model_.gpus; ++node) {
      if (name == "/dev/dri/renderD" + std::to_string(render_minor_of(node))) file.node = node;
    }
    if (file.node < 0) return -ENOENT;
  }
  const int descriptor = anonymous_file(0);
  if (descriptor < 0) return -EMFILE;
  files_[descriptor] = file;
  return descriptor;
}

int FakeKernel::close(int descriptor) {
  const std::lock_guard lock(mutex_);
  if (files_.erase(descriptor) == 0) return -EBADF;
  for (auto& [node, space] : spaces_) {
    if (space.descriptor == descriptor) space.descriptor = -1; // free for the next
  }
  return ::close(descriptor);
}

int FakeKernel::descriptor_in_use(int descriptor) {
  const std::lock_guard lock(mutex_);
  const auto file = files_.find(descriptor);
  if (file == files_.end() || settings_.faults.no_shared_descriptor) return descriptor;
  const auto space = spaces_.find(file->second.node);
  return space == spaces_.end() ? descriptor : space->second.descriptor;
}

// As the kernel does it: by number, with the caller's size; what the caller does not pass is zero.
int FakeKernel::ioctl(int descriptor, unsigned long request, void* argument) {
  const std::lock_guard lock(mutex_);
  const auto file = files_.find(descriptor);
  if (file == files_.end() || file->second.kind != FileKind::driver) return -EBADF;
  const auto error = settings_.faults.errors.find(kfd::number_of(request));
  if (error != settings_.faults.errors.end()) return -error->second;
  alignas(8) std::byte buffer[128] = {};
  const std::size_t bytes = kfd::bytes_of(request);
  if (bytes > sizeof buffer) return -EINVAL;
  std::memcpy(buffer, argument, bytes);
  const int code = dispatch(request, buffer);
  if (code == 0) std::memcpy(argument, buffer, bytes);
  return code;
}

int FakeKernel::dispatch(unsigned long request, std::byte* argument) {
  switch (kfd::number_of(request)) {
    case kfd::number_of(kfd::kGetVersion):
      as<kfd::Version>(argument) = {1, settings_.faults.minor};
      return 0;
    case kfd::number_of(kfd::kAcquireVm):
      return acquire_vm(as<kfd::AcquireVm>(argument));
    case kfd::number_of(kfd::kGetApertures):
      return apertures(as<kfd::Apertures>(argument));
    case kfd::number_of(kfd::kAllocateMemory):
      return allocate(as<kfd::AllocateMemory>(argument));
    case kfd::number_of(kfd::kFreeMemory):
      return free_memory(as<kfd::FreeMemory>(argument));
    case kfd::number_of(kfd::kMapMemory):
      return map_memory(as<kfd::MapMemory>(argument), true);
    case kfd::number_of(kfd::kUnmapMemory):
      return map_memory(as<kfd::MapMemory>(argument), false);
    case kfd::number_of(kfd::kCreateQueue):
      return create_queue(as<kfd::CreateQueue>(argument));
    case kfd::number_of(kfd::kDestroyQueue):
      return destroy_queue(as<kfd::DestroyQueue>(argument));
    default:
      return -EINVAL;
  }
}

int FakeKernel::node_of(std::uint32_t gpu_id) const {
  for (int node = kCpuNodes; node < kCpuNodes + model_.gpus; ++node) {
    if (gpu_id_of(node) == gpu_id) return node;
  }
  return -1;
}

int FakeKernel::acquire_vm(const kfd::AcquireVm& argument) {
  const int node = node_of(argument.gpu_id);
  const auto file = files_.find(static_cast<int>(argument.drm_descriptor));
  if (node < 0 || file == files_.end() || file->second.node != node) return -EINVAL;
  Space& space = spaces_[node];
  if (space.descriptor < 0) space.descriptor = file->first;
  return space.descriptor == file->first ? 0 : -EBUSY;
}

int FakeKernel::apertures(kfd::Apertures& argument) {
  auto* const out = reinterpret_cast<kfd::Aperture*>(argument.array);
  const auto room = static_cast<int>(argument.count);
  argument.count = static_cast<std::uint32_t>(model_.gpus);
  for (int i = 0; i < std::min(room, model_.gpus); ++i) {
    out[i] = {};
    out[i].gpu_id = gpu_id_of(kCpuNodes + i);
    out[i].gpuvm_base = kPage;
    out[i].gpuvm_limit = (std::uint64_t{1} << 47) - 1;
  }
  return 0;
}

int FakeKernel::allocate(kfd::AllocateMemory& argument) {
  constexpr std::uint32_t kDomains = kfd::kMemoryVram | kfd::kMemoryGtt | kfd::kMemoryDoorbell;
  const int node = node_of(argument.gpu_id);
  if (node < 0 || !spaces_.contains(node)) return -EINVAL;
  if (std::popcount(argument.flags & kDomains) != 1 || argument.bytes == 0) return -EINVAL;
  if (argument.address % kPage != 0 || argument.bytes % kPage != 0) return -EINVAL;
  Object object;
  object.node = node;
  object.address = argument.address;
  object.bytes = argument.bytes;
  object.flags = argument.flags;
  if (object.doorbell()) {
    if (object.bytes != kfd::kDoorbellPage) return -EINVAL;
  } else {
    object.file = anonymous_file(object.bytes);
    if (object.file < 0) return -ENOMEM;
  }
  argument.handle = next_handle_++;
  argument.map_offset = argument.handle * static_cast<std::uint64_t>(kObjectOffset);
  objects_[argument.handle] = object;
  return 0;
}

int FakeKernel::free_memory(const kfd::FreeMemory& argument) {
  const auto found = objects_.find(argument.handle);
  if (found == objects_.end()) return -EINVAL;
  if (!found->second.mapped.empty()) return -EBUSY;
  if (found->second.file >= 0) ::close(found->second.file);
  objects_.erase(found);
  return 0;
}

// The bytes appear at the address at once, so that engines find them there.
int FakeKernel::map_memory(kfd::MapMemory& argument, bool map) {
  const auto found = objects_.find(argument.handle);
  if (found == objects_.end() || argument.devices == 0) return -EINVAL;
  Object& object = found->second;
  const auto* const ids = reinterpret_cast<const std::uint32_t*>(argument.device_ids);
  for (std::uint32_t i = 0; i < argument.devices; ++i) {
    const int node = node_of(ids[i]);
    if (node < 0 || !spaces_.contains(node)) return -EINVAL;
    if (!map) {
      object.mapped.erase(node);
    } else {
      if (object.mapped.empty() && object.file >= 0) {
        void* const at = reinterpret_cast<void*>(object.address);
        const void* const got = ::mmap(
            at, object.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, object.file, 0);
        if (got == MAP_FAILED) return -ENOMEM;
      }
      object.mapped.insert(node);
    }
    refresh_windows(node);
    ++argument.done;
  }
  return 0;
}

void FakeKernel::refresh_windows(int node) {
  core::WindowSet& windows = spaces_[node].windows;
  windows.clear();
  for (const auto& [handle, object] : objects_) {
    if (!object.mapped.contains(node) || object.doorbell()) continue;
    windows.add({object.address, object.bytes, true, 0, 0, 0, "memory of a GPU"});
  }
}

FakeKernel::Object* FakeKernel::object_at(std::uint64_t address) {
  const auto found = std::find_if(objects_.begin(), objects_.end(), [&](const auto& entry) {
    return address - entry.second.address < entry.second.bytes;
  });
  return found == objects_.end() ? nullptr : &found->second;
}

std::intptr_t FakeKernel::mmap(
    void* address, std::size_t bytes, int protection, int flags, int descriptor,
    std::int64_t offset) {
  const std::lock_guard lock(mutex_);
  int file = -1;
  if (descriptor >= 0) {
    const auto known = files_.find(descriptor);
    if (known == files_.end()) return -EBADF;
    if (known->second.kind == FileKind::driver) {
      const auto space = spaces_.find(static_cast<int>(offset / kDoorbellOffset));
      if (space == spaces_.end() || bytes != kfd::kDoorbellPage) return -EINVAL;
      file = space->second.doorbell_file;
    } else {
      const auto object = objects_.find(static_cast<std::uint64_t>(offset / kObjectOffset));
      if (object == objects_.end() || object->second.bytes != bytes) return -EINVAL;
      // Only the file by which the address space was acquired may map its objects.
      if (spaces_[object->second.node].descriptor != descriptor) return -EACCES;
      file = object->second.file;
    }
  }
  void* const at = ::mmap(address, bytes, protection, flags, file, 0);
  return at == MAP_FAILED ? -errno : static_cast<std::intptr_t>(number(at));
}

int FakeKernel::munmap(void* address, std::size_t bytes) {
  return ::munmap(address, bytes) == 0 ? 0 : -errno;
}

std::byte* FakeKernel::import_memory(int file, std::size_t bytes, int node, void* at) {
  const std::lock_guard lock(mutex_);
  const int own = dup(file);
  const int fixed = at != nullptr ? MAP_FIXED : 0;
  at = ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, own, 0);
  if (at == MAP_FAILED) return nullptr;
  objects_[next_handle_++] = {node, number(at), bytes, kfd::kMemoryVram, own, {node}};
  refresh_windows(node);
  return static_cast<std::byte*>(at);
}

int FakeKernel::file_of(const void* base) {
  const std::lock_guard lock(mutex_);
  const Object* const object = object_at(number(base));
  return object == nullptr ? -1 : object->file;
}

void FakeKernel::allow(const void* base, int node) {
  const std::lock_guard lock(mutex_);
  Object* const object = object_at(number(base));
  if (object == nullptr) return;
  object->mapped.insert(node);
  refresh_windows(node);
}

void FakeKernel::forget(const void* base) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(objects_.begin(), objects_.end(), [&](const auto& entry) {
    return entry.second.address == number(base);
  });
  if (found == objects_.end()) return;
  const Object object = found->second;
  objects_.erase(found);
  for (const int node : object.mapped) refresh_windows(node);
  ::munmap(reinterpret_cast<void*>(object.address), object.bytes);
  ::close(object.file);
}

std::size_t FakeKernel::objects() {
  const std::lock_guard lock(mutex_);
  return objects_.size();
}

std::size_t FakeKernel::queues() {
  const std::lock_guard lock(mutex_);
  return queues_.size();
}

std::size_t FakeKernel::files() {
  const std::lock_guard lock(mutex_);
  return files_.size();
}

std::vector<std::string> FakeKernel::faults() {
  const std::lock_guard lock(mutex_);
  return faults_;
}

} // namespace ferry::test
