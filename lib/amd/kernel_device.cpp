// SPDX-License-Identifier: MIT
#include "lib/amd/kernel_device.hpp"

#include <fmt/format.h>

#include <cstring>

#include "lib/amd/kernels/kernels.hpp"
#include "lib/base/error.hpp"

namespace ferry::amd {
namespace {

void check(int error, const char* what) {
  if (error == 0) return;
  throw core::Failure(core::ErrorKind::other, fmt::format("{} fails with error {}", what, error));
}

// HIP has a current device for each thread, which belongs to the program.
class CurrentDevice {
 public:
  CurrentDevice(const HipModules& hip, int device) : hip_(hip) {
    if (hip_.get_device(&before_) == 0 && before_ != device) error_ = hip_.set_device(device);
    changed_ = before_ != device;
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (changed_) (void)hip_.set_device(before_);
  }
  [[nodiscard]] int error() const { return error_; }

 private:
  const HipModules& hip_;
  int before_ = 0;
  int error_ = 0;
  bool changed_ = false;
};

} // namespace

std::string KernelDevices::refuses(const Gpu& gpu) const {
  if (!hip_.complete()) return "this program does not use HIP, which launches kernels";
  if (code_objects().count == 0) return "Ferry was built without a compiler for AMD GPUs";
  // HIP would launch them on the first partition.
  if (gpu.shares_address) return "HIP finds GPUs by bus address, which partitions share";
  const std::string processor = gfx_name(gpu.gfx);
  if (code_object_for(processor.c_str()) != nullptr) return {};
  return fmt::format("no kernels were compiled for {}", processor);
}

KernelFunction KernelDevices::function(const Gpu& gpu, const char* name) {
  KernelFunction found;
  check(
      hip_.device_by_bus_address(&found.device, gpu.bus_address().c_str()),
      "hipDeviceGetByPCIBusId");
  const CurrentDevice current(hip_, found.device);
  check(current.error(), "hipSetDevice");
  const std::lock_guard lock(mutex_);
  void*& module = modules_[found.device];
  if (module == nullptr) {
    const CodeObject* const object = code_object_for(gfx_name(gpu.gfx).c_str());
    check(hip_.load(&module, object->image), "hipModuleLoadData");
  }
  check(hip_.function(&found.function, module, name), "hipModuleGetFunction");
  return found;
}

std::shared_ptr<void> KernelDevices::make_stream(int device) const {
  const CurrentDevice current(hip_, device);
  check(current.error(), "hipSetDevice");
  void* stream = nullptr;
  check(hip_.stream_create(&stream, HipModules::kNonBlocking), "hipStreamCreateWithFlags");
  return {stream, [destroy = hip_.stream_destroy](void* at) { (void)destroy(at); }};
}

std::shared_ptr<void> KernelDevices::host_memory(std::size_t bytes) const {
  void* memory = nullptr;
  check(hip_.host_malloc(&memory, bytes, 0), "hipHostMalloc");
  std::memset(memory, 0, bytes);
  return {memory, [free = hip_.host_free](void* at) { (void)free(at); }};
}

std::optional<std::string> KernelDevices::verdict(const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  const auto found = verdicts_.find(kernel);
  if (found == verdicts_.end()) return std::nullopt;
  return found->second;
}

void KernelDevices::remember(const std::string& kernel, const std::string& verdict) {
  const std::lock_guard lock(mutex_);
  verdicts_[kernel] = verdict;
}

int KernelDevices::launch(
    const KernelFunction& kernel, const KernelShape& shape, void* arguments, void* stream) const {
  const CurrentDevice current(hip_, kernel.device);
  if (current.error() != 0) return current.error();
  void* one[] = {arguments};
  return hip_.launch(
      kernel.function, shape.blocks, 1, 1, shape.lanes, 1, 1, 0, stream, one, nullptr);
}

} // namespace ferry::amd
