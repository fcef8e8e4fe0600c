// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/amd/devices.hpp"
#include "lib/amd/sdma_setup.hpp"
#include "lib/amd/visibility.hpp"
#include "lib/exec/device_backend.hpp"

namespace ferry::amd {

enum class PathChoice { automatic, kfd, hsa, kernels, staging };

struct BackendOptions {
  PathChoice path = PathChoice::automatic;
  std::uint64_t stage_chunk = 256 * 1024;
  SetUpOptions set_up;
  Blinds blinds;
};

// Collectives on memory of AMD GPUs.
class AmdBackend final : public core::DeviceBackend {
 public:
  // Throws Failure when there is no GPU that can be used.
  AmdBackend(System& system, const HsaApi& hsa, const HipApi& hip, BackendOptions options);

  [[nodiscard]] const char* name() const override { return "amd"; }
  [[nodiscard]] bool owns(const void* pointer) noexcept override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  [[nodiscard]] std::uint64_t allocation_of(const void* pointer) noexcept override;
  [[nodiscard]] std::unique_ptr<core::DevicePlan> make_plan(
      const core::CollectiveDesc& desc, core::DeviceTeam& team) override;
  [[nodiscard]] std::string describe() override;
  [[nodiscard]] std::string self_test() override;

  [[nodiscard]] Devices& devices() { return devices_; }
  [[nodiscard]] BackendOptions& options() { return options_; }

 private:
  Devices devices_;
  BackendOptions options_;
};

[[nodiscard]] BackendOptions options_of_environment();

} // namespace ferry::amd
