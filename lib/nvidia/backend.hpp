// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "lib/exec/device_backend.hpp"
#include "lib/nvidia/memory.hpp"
#include "lib/nvidia/proxy.hpp"
#include "lib/nvidia/table.hpp"

namespace ferry::nvidia {

class Backend final : public core::DeviceBackend {
 public:
  // Throws Failure when this process has no usable device.
  Backend();

  [[nodiscard]] const char* name() const override { return "nvidia"; }
  [[nodiscard]] bool owns(const void* pointer) noexcept override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  [[nodiscard]] std::unique_ptr<core::DevicePlan> make_plan(
      const core::CollectiveDesc& desc, core::DeviceTeam& team) override;
  [[nodiscard]] std::unique_ptr<core::KernelTeam> make_team(
      const core::TeamMemory& memory, core::DeviceTeam& team) override;
  [[nodiscard]] std::string describe() override;

  // Measured rows in place of the built-in ones; they outlive the backend.
  void use_table(std::span<const Row> rows) { rows_ = rows; }
  [[nodiscard]] MappingCache& mappings() { return mappings_; }

 private:
  [[nodiscard]] Proxy& proxy_of(int device);

  MappingCache mappings_;
  std::mutex proxies_mutex_;
  std::map<int, Proxy> proxies_; // by device, made for the first team
  std::span<const Row> rows_;
  int devices_ = 0;
};

} // namespace ferry::nvidia
