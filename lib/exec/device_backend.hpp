// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "device/start.hpp"
#include "device/team.hpp"
#include "lib/base/error.hpp"
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
  // ranks; block(rank) is where this process sees that of `rank`, of the last share(). All stay as
  // long as the team. Collective; throws Failure.
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
  // Queues starts ahead that a kernel, or start(), releases one by one. Throws Failure.
  [[nodiscard]] virtual device::StartHandle arm(int /*starts*/) {
    throw Failure(
        ErrorKind::request, "this plan has no starts that a kernel can make",
        "start it with ferry_start or ferry_start_on_stream; ferry_explain tells how it runs");
  }
  // Of start(): ready when complete or failed; a failure is in status().
  [[nodiscard]] virtual Poll progress() = 0;
  [[nodiscard]] virtual const Status& status() const = 0;
  [[nodiscard]] virtual std::string missing() const = 0; // what it waits for, for people
  [[nodiscard]] virtual std::string explain() const = 0; // "<path>: <why>"
};

// Device memory of this rank that kernels of a team put to and from.
struct TeamMemory {
  void* window = nullptr; // peers put here; as long on all ranks
  std::uint64_t window_bytes = 0;
  const void* source = nullptr; // puts may read from here too; null: only from the window
  std::uint64_t source_bytes = 0;
};

// What kernels of the ranks of a team talk through.
class KernelTeam {
 public:
  KernelTeam() = default;
  KernelTeam(const KernelTeam&) = delete;
  KernelTeam& operator=(const KernelTeam&) = delete;
  virtual ~KernelTeam() = default;

  // Passed to kernels by value, as long as this lives.
  [[nodiscard]] virtual const device::TeamHandle& handle() const = 0;
  // Of the first packet that was refused; its queue stands still.
  [[nodiscard]] virtual Status error() const = 0;
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
  // Tells the allocation that holds a pointer from an earlier one at the same address; 0: nobody
  // can tell. Never throws.
  [[nodiscard]] virtual std::uint64_t allocation_of(const void* /*pointer*/) noexcept { return 0; }
  // Collective over the team: some rank has device memory in this call; ranks with host memory only
  // take part. The team outlives the plan. Throws Failure alike on all ranks.
  [[nodiscard]] virtual std::unique_ptr<DevicePlan> make_plan(
      const CollectiveDesc& desc, DeviceTeam& team) = 0;
  // Collective over the team, which outlives the result. Throws Failure alike on all ranks.
  [[nodiscard]] virtual std::unique_ptr<KernelTeam> make_team(
      const TeamMemory& /*memory*/, DeviceTeam& /*team*/) {
    throw Failure(
        ErrorKind::other, "this GPU has no queues that kernels can post to",
        "use collectives, or start persistent ones on streams");
  }
  // Lines for `ferry-info --selftest`: what was found, and why not more.
  [[nodiscard]] virtual std::string describe() = 0;
  // Lines for `ferry-info --selftest`: each layer in order, "pass", "fail" or "skip" first, with
  // the measured figure and what to do. Under a minute.
  [[nodiscard]] virtual std::string self_test() { return {}; }
};

using DeviceBackendEntry = DeviceBackend* (*)(const char** why);

} // namespace ferry::core
