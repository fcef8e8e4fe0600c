// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "lib/base/wait.hpp"
#include "lib/schedule/collective.hpp"

namespace ferry::core {

// The ranks of a communicator as a backend sees them.
class DeviceTeam {
 public:
  DeviceTeam() = default;
  DeviceTeam(const DeviceTeam&) = delete;
  DeviceTeam& operator=(const DeviceTeam&) = delete;
  virtual ~DeviceTeam() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  [[nodiscard]] virtual const std::string& name() const = 0;
  // Collective, waits within the bounds of every wait; throws Failure. all[ranks() * bytes].
  virtual void allgather(const void* mine, std::size_t bytes, void* all) = 0;
  // Shared host memory of this rank (Heap), mapped by all ranks: `bytes` zeroed bytes, alike on all
  // ranks; block(rank) is where this process sees that of `rank`. Collective; throws Failure.
  virtual void share(std::size_t bytes) = 0;
  [[nodiscard]] virtual std::byte* block(int rank) const = 0;
  // An error naming a rank whose process has ended.
  [[nodiscard]] virtual Status check_alive() const = 0;
};

// A persistent collective whose buffers lie, on some rank, in device memory.
class DevicePlan {
 public:
  DevicePlan() = default;
  DevicePlan(const DevicePlan&) = delete;
  DevicePlan& operator=(const DevicePlan&) = delete;
  virtual ~DevicePlan() = default;

  // Never blocks. The buffers are ready when it is called.
  virtual void start() = 0;
  // On a stream of the device's runtime (cudaStream_t, hipStream_t), also while it is captured:
  // what was queued before comes first, what is queued after sees the result.
  virtual void start_on_stream(void* stream) = 0;
  // Of start(): ready when complete or failed; a failure is in status().
  [[nodiscard]] virtual Poll progress() = 0;
  [[nodiscard]] virtual const Status& status() const = 0;
  [[nodiscard]] virtual std::string missing() const = 0; // what it waits for, for people
  [[nodiscard]] virtual std::string explain() const = 0; // "<path>: <why>"
};

// A loaded module for one kind of GPU: libferry-nvidia.so, libferry-amd.so. Its only exported
// symbol is `ferry_device_backend`, an extern "C" function that returns the DeviceBackend of the
// process, or null with a reason (no device, no driver) in *why.
class DeviceBackend {
 public:
  DeviceBackend() = default;
  DeviceBackend(const DeviceBackend&) = delete;
  DeviceBackend& operator=(const DeviceBackend&) = delete;
  virtual ~DeviceBackend() = default;

  [[nodiscard]] virtual const char* name() const = 0; // "nvidia", "amd"
  // Is this device memory (also interior pointers)? Under 200 ns, never throws.
  [[nodiscard]] virtual bool owns(const void* pointer) noexcept = 0;
  // A synchronous copy of which at least one side is device memory, for small blocks and for ranks
  // that mix host and device memory. Throws Failure.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  // Collective over the team: some rank has device memory in this call; ranks with host memory only
  // take part. The team outlives the plan. Throws Failure alike on all ranks.
  [[nodiscard]] virtual std::unique_ptr<DevicePlan> make_plan(
      const CollectiveDesc& desc, DeviceTeam& team) = 0;
  // Lines for `ferry-info --selftest`: what was found, and why not more.
  [[nodiscard]] virtual std::string describe() = 0;
  // Lines for `ferry-info --selftest`: each layer in order, "pass", "fail" or "skip" first, with
  // the measured figure and what to do. Under a minute.
  [[nodiscard]] virtual std::string self_test() { return {}; }
};

using DeviceBackendEntry = DeviceBackend* (*)(const char** why);

} // namespace ferry::core
