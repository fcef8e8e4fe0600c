// SPDX-License-Identifier: MIT
#include "tests/amd/fake/modules.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "device/low_latency.hpp"
#include "device/wide_exchange.hpp"
#include "lib/amd/kernels/kernels.hpp"
#include "lib/amd/kernels/run_start.hpp"
#include "tests/amd/fake/rocr.hpp"
#include "tests/support/kernel_job.hpp"

namespace ferry::test {
namespace {

constexpr int kInvalidValue = 1;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidImage = 200;
constexpr int kInvalidHandle = 400;
constexpr int kNotFound = 500;

// As the Deadline of the kernels.
class HostDeadline {
 public:
  HostDeadline(std::uint64_t ticks, const device::KernelReport* report)
      : end_(std::chrono::steady_clock::now() + std::chrono::microseconds(ticks / 100)),
        report_(report) {}
  bool operator()() const {
    std::this_thread::yield();
    return device::load_relaxed(&report_->stop) == 0 && std::chrono::steady_clock::now() < end_;
  }

 private:
  std::chrono::steady_clock::time_point end_;
  const device::KernelReport* report_;
};

enum class KernelKind { low_latency, wide, start };

struct Function {
  int device = 0;
  KernelKind kind = KernelKind::low_latency;
};

struct Modules {
  std::mutex mutex;
  std::map<std::string, int> devices; // by bus address
  std::map<void*, int> loaded; // the device of each module
  std::map<std::string, Function> functions; // by device and name
};

Modules& modules() {
  static Modules all;
  return all;
}

thread_local int current_device = 0;

int device_by_bus_address(int* device, const char* address) {
  const std::lock_guard lock(modules().mutex);
  const int next = static_cast<int>(modules().devices.size());
  *device = modules().devices.emplace(address, next).first->second;
  return 0;
}

int set_device(int device) {
  const std::lock_guard lock(modules().mutex);
  if (device < 0 || device >= static_cast<int>(modules().devices.size())) return kInvalidDevice;
  current_device = device;
  return 0;
}

int get_device(int* device) {
  *device = current_device;
  return 0;
}

int load(void** module, const void* image) {
  const amd::CodeObjects all = amd::code_objects();
  for (std::size_t i = 0; i < all.count; ++i) {
    if (all.first[i].image != image) continue;
    const std::lock_guard lock(modules().mutex);
    *module = std::malloc(1);
    modules().loaded[*module] = current_device;
    return 0;
  }
  return kInvalidImage;
}

int find_function(void** function, void* module, const char* name) {
  const std::lock_guard lock(modules().mutex);
  const auto home = modules().loaded.find(module);
  if (home == modules().loaded.end()) return kInvalidHandle;
  static const std::map<std::string, KernelKind> kinds{
      {amd::kLowLatencyKernel, KernelKind::low_latency},
      {amd::kWideKernel, KernelKind::wide},
      {amd::kStartKernel, KernelKind::start}};
  const auto kind = kinds.find(name);
  if (kind == kinds.end()) return kNotFound;
  Function& found = modules().functions[std::to_string(home->second) + name];
  found = {home->second, kind->second};
  *function = &found;
  return 0;
}

std::atomic<KernelFault> the_fault{KernelFault::none};
std::atomic<std::size_t> launches{0};
std::atomic<std::chrono::microseconds> kernel_time{std::chrono::microseconds(0)};

// Of the own block, which is there when the kernel has ended: memory of a modelled GPU is the
// host's.
template <class Args>
void spoil(const Args& args) {
  if (args.own.bytes > 0) *static_cast<unsigned char*>(args.own.to) ^= 1;
}

// Runs a kernel with the fault of the process.
template <class Args, class Kernel>
void run_faulty(const Args& args, const Kernel& kernel) {
  ++launches;
  const KernelFault fault = the_fault;
  if (fault == KernelFault::hangs) {
    while (device::load_relaxed(&args.report->stop) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return;
  }
  std::this_thread::sleep_for(kernel_time.load());
  kernel();
  if (fault == KernelFault::wrong_byte) spoil(args);
}

// A few lanes stand for all.
template <class Kernel>
void run_grid(std::uint32_t blocks, const Kernel& kernel) {
  constexpr std::uint32_t kFew = 8;
  if (blocks <= kFew) {
    launch<device::Workgroup>(blocks, 2, kernel);
  } else {
    launch<device::Thread>(blocks, 1, kernel);
  }
}

int launch_kernel(
    void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
    unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** arguments,
    void** extra) {
  const Function& called = *static_cast<const Function*>(function);
  const bool shaped = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
  if (!shaped || block_x > amd::kMaxLanes || shared_bytes != 0 || extra != nullptr) {
    return kInvalidValue;
  }
  if (called.device != current_device) return kInvalidHandle;
  auto& queue = *static_cast<FakeStream*>(stream);
  if (called.kind == KernelKind::start) {
    ++launches;
    queue.push([args = *static_cast<const amd::StartArgs*>(arguments[0])] {
      amd::run_start(args, HostDeadline(args.patience, &args.report->waits));
    });
  } else if (called.kind == KernelKind::wide) {
    queue.push([grid_x, args = *static_cast<const device::WideArgs*>(arguments[0])] {
      run_faulty(args, [&] {
        run_grid(grid_x, [&](const device::Place& place, const auto& scope) {
          run_wide(args, HostDeadline(args.patience, args.report), place, scope);
        });
      });
    });
  } else {
    queue.push([grid_x, args = *static_cast<const device::LowLatencyArgs*>(arguments[0])] {
      run_faulty(args, [&] {
        run_grid(grid_x, [&](const device::Place& place, const auto& scope) {
          run_low_latency(args, HostDeadline(args.patience, args.report), place, scope);
        });
      });
    });
  }
  return 0;
}

int stream_create(void** stream, unsigned) {
  *stream = new FakeStream;
  return 0;
}

int stream_destroy(void* stream) {
  delete static_cast<FakeStream*>(stream);
  return 0;
}

int stream_query(void* stream) {
  return static_cast<FakeStream*>(stream)->idle() ? 0 : amd::HipModules::kNotReady;
}

int host_malloc(void** memory, std::size_t bytes, unsigned) {
  *memory = std::calloc(1, bytes);
  return *memory != nullptr ? 0 : kInvalidValue;
}

int host_free(void* memory) {
  std::free(memory);
  return 0;
}

} // namespace

void set_kernel_fault(KernelFault fault) {
  the_fault = fault;
}

void set_kernel_time(std::chrono::microseconds time) {
  kernel_time = time;
}

std::size_t kernel_launches() {
  return launches;
}

amd::HipModules fake_hip_modules() {
  amd::HipModules hip;
  hip.get_device = get_device;
  hip.set_device = set_device;
  hip.device_by_bus_address = device_by_bus_address;
  hip.load = load;
  hip.function = find_function;
  hip.launch = launch_kernel;
  hip.stream_create = stream_create;
  hip.stream_destroy = stream_destroy;
  hip.stream_query = stream_query;
  hip.host_malloc = host_malloc;
  hip.host_free = host_free;
  return hip;
}

} // namespace ferry::test
