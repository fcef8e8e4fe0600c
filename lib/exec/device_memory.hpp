// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/exec/device_backend.hpp"
#include "lib/schedule/collective.hpp"

namespace ferry::core {

// Kinds of GPU that there is a module for.
enum class DeviceKind : std::uint8_t { none, nvidia, amd };

// The module of a kind, loaded at the first call; null with the reason in *why (may be null) when
// this process cannot use it.
[[nodiscard]] DeviceBackend* device_backend(DeviceKind kind, std::string* why);

// Whose memory a pointer is. Without a GPU runtime in the process a look into a small cache.
[[nodiscard]] DeviceKind device_kind(const void* pointer) noexcept;
// Of the buffers of a call; send buffer first.
[[nodiscard]] DeviceKind device_kind(const CollectiveDesc& desc) noexcept;

// Whether this process could come to have memory of a GPU: there is one here, of whatever use.
[[nodiscard]] bool may_have_gpu() noexcept;

// For tests: in place of the module of a kind. Lives until the process ends.
void install_device_backend(DeviceKind kind, DeviceBackend& backend);

// Host memory in place of the device memory of a call: right for every call, at the price of two
// more copies. The device's buffers are read in load() and written in store().
class DeviceBounce {
 public:
  // Null when no buffer of the call is device memory. Throws Failure when its module is missing.
  [[nodiscard]] static std::unique_ptr<DeviceBounce> make(
      const CollectiveDesc& desc, int rank, int ranks);
  ~DeviceBounce();
  DeviceBounce(const DeviceBounce&) = delete;
  DeviceBounce& operator=(const DeviceBounce&) = delete;

  // The same call on host memory.
  [[nodiscard]] const CollectiveDesc& host() const { return host_; }
  void load();
  [[nodiscard]] Status store();

 private:
  // Bytes [device + low, device + high) of a buffer and their host copy.
  struct Side {
    DeviceBackend* backend = nullptr; // null: host memory already
    std::byte* device = nullptr;
    std::byte* copy = nullptr;
    std::uint64_t bytes = 0;
    bool loads = false;
    bool stores = false;
  };

  DeviceBounce() = default;
  const void* replace(Side& side, const void* buffer, std::int64_t low, std::int64_t high);

  CollectiveDesc host_;
  Side send_;
  Side recv_;
};

} // namespace ferry::core
