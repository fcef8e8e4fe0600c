// SPDX-License-Identifier: MIT
#pragma once

// The kernels of the compute path for AMD GPUs: names, arguments, and the code objects that hold
// them, for whoever loads and launches them (hipModuleLoadData, hipModuleLaunchKernel). Every
// kernel takes its one structure by value.

#include <cstddef>
#include <cstdint>

#include "device/low_latency.hpp"
#include "device/ring.hpp"
#include "device/start.hpp"
#include "device/wide_exchange.hpp"

namespace ferry::amd {

inline constexpr std::uint32_t kMaxLanes = 512; // of a workgroup

inline constexpr const char* kLowLatencyKernel = "ferry_low_latency"; // device::LowLatencyArgs
inline constexpr const char* kWideKernel = "ferry_wide"; // device::WideArgs
inline constexpr const char* kStartKernel = "ferry_start"; // StartArgs, one lane
inline constexpr const char* kPutSignalKernel = "ferry_put_signal"; // PutSignalArgs, one lane

// `patience` of all arguments counts the steady clock of the device: 100 MHz but on gfx90a, where
// it is 25 MHz (so RCCL has it; HIP tells as hipDeviceAttributeWallClockRate). What is longer than
// a century is no limit.
constexpr std::uint64_t ticks_of(double seconds, bool gfx90a) {
  constexpr double kLongest = 3e9;
  const double limited = seconds <= 0 || seconds > kLongest ? kLongest : seconds;
  return static_cast<std::uint64_t>(limited * (gfx90a ? 25e6 : 100e6));
}

// Memory of the host.
struct StartReport {
  device::KernelReport waits; // the first that gave up
  std::uint64_t ended = 0; // launches
};

struct StartArgs {
  device::StartHandle handle;
  std::uint64_t number = 1; // of the start, as start() counts
  std::uint64_t launch = 1; // counted from 1; they follow each other
  StartReport* report = nullptr;
  std::uint64_t patience = 0;
};

struct PutSignalResult {
  std::uint64_t status = 0; // PutStatus + 1; 0: the kernel has not ended
  std::uint64_t ticket = 0;
};

struct PutSignalArgs {
  device::RingHandle ring;
  void* to = nullptr;
  const void* from = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t* signal = nullptr;
  std::uint64_t expected_step = 1; // added to the signal
  std::uint64_t expected = 1; // awaited there
  PutSignalResult* result = nullptr;
  std::uint64_t patience = 0;
};

// What was compiled for one kind of GPU: an ELF file.
struct CodeObject {
  const char* processor;
  const unsigned char* image;
  std::size_t bytes;
};

struct CodeObjects {
  const CodeObject* first;
  std::size_t count; // 0: Ferry was built without a device compiler for AMD
  const char* compiler;
};

CodeObjects code_objects();

// For a name such as gfx942 or gfx942:sramecc+:xnack-, as devices give it; null: there is none.
const CodeObject* code_object_for(const char* device_name);

} // namespace ferry::amd
