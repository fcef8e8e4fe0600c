// SPDX-License-Identifier: MIT
#include "lib/nvidia/backend.hpp"

#include <fmt/format.h>

#include <optional>

#include "lib/base/error.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/driver.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "lib/nvidia/plan.hpp"
#include "lib/nvidia/proxy_team.hpp"

namespace ferry::nvidia {

namespace {

using core::ErrorKind;
using core::Failure;

// Nothing goes to another rank.
class LocalPlan final : public core::DevicePlan {
 public:
  LocalPlan(const Blocks& blocks, int device) : blocks_(blocks), device_(device) {}

  void start() override {
    try {
      copy(nullptr);
    } catch (const Failure& failure) {
      status_ = failure.status();
    }
  }
  void start_on_stream(void* stream) override { copy(static_cast<hipStream_t>(stream)); }
  core::Poll progress() override {
    if (device_ >= 0 && hipStreamQuery(nullptr) == hipErrorNotReady) return core::Poll::pending;
    return core::Poll::ready;
  }
  [[nodiscard]] const core::Status& status() const override { return status_; }
  [[nodiscard]] std::string missing() const override { return "a copy on the GPU"; }
  [[nodiscard]] std::string explain() const override {
    return "local: nothing goes to another rank";
  }

 private:
  void copy(hipStream_t stream) const {
    if (!blocks_.keeps_own()) return;
    const Piece own = blocks_.source(blocks_.rank);
    char* const to = blocks_.result(blocks_.rank).at;
    std::optional<DeviceScope> scope;
    if (device_ >= 0) scope.emplace(device_);
    check_runtime(hipMemcpyAsync(to, own.at, own.bytes, hipMemcpyDefault, stream), "cudaMemcpy");
  }

  const Blocks blocks_;
  const int device_;
  core::Status status_;
};

} // namespace

Backend::Backend() : rows_(table()) {
  const Driver& d = driver();
  if (!d.missing.empty()) throw Failure(ErrorKind::other, d.missing);
  check_driver(d.init(0), "cuInit");
  check_runtime(hipGetDeviceCount(&devices_), "cudaGetDeviceCount");
  if (devices_ == 0) throw Failure(ErrorKind::other, "no NVIDIA GPU is visible");
}

bool Backend::owns(const void* pointer) noexcept {
  return kind_of(pointer) != Kind::host;
}

void Backend::copy(void* to, const void* from, std::size_t bytes) {
  const void* const there = owns(to) ? to : from;
  const DeviceScope scope(device_of(there));
  check_runtime(hipMemcpy(to, from, bytes, hipMemcpyDefault), "cudaMemcpy");
}

std::unique_ptr<core::DevicePlan> Backend::make_plan(
    const core::CollectiveDesc& desc, core::DeviceTeam& team) {
  const Blocks blocks(desc, team.rank(), team.ranks());
  Wiring wiring = wire(blocks, team, mappings_, rows_);
  if (wiring.largest == 0) {
    const bool here = blocks.keeps_own() && owns(blocks.result(blocks.rank).at);
    return std::make_unique<LocalPlan>(
        blocks, here ? device_of(blocks.result(blocks.rank).at) : -1);
  }
  std::optional<DeviceScope> scope;
  if (wiring.device >= 0) scope.emplace(wiring.device);
  if (!wiring.staged.empty()) return make_staged_plan(blocks, std::move(wiring), team);
  return make_direct_plan(blocks, std::move(wiring), team);
}

Proxy& Backend::proxy_of(int device) {
  const std::lock_guard lock(proxies_mutex_);
  return proxies_.try_emplace(device, device).first->second;
}

std::unique_ptr<core::KernelTeam> Backend::make_team(
    const core::TeamMemory& memory, core::DeviceTeam& team) {
  // A window that is none is reported to all ranks below.
  const int device = owns(memory.window) ? device_of(memory.window) : 0;
  return std::make_unique<ProxyTeam>(team, mappings_, proxy_of(device), memory);
}

std::string Backend::describe() {
  std::string text;
  int runtime = 0;
  int version = 0;
  check_runtime(hipRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check_runtime(hipDriverGetVersion(&version), "cudaDriverGetVersion");
  text += fmt::format(
      "CUDA runtime {}.{}, driver for {}.{}\n", runtime / 1000, runtime % 1000 / 10, version / 1000,
      version % 1000 / 10);
  for (int i = 0; i < devices_; ++i) {
    hipDeviceProp_t properties{};
    check_runtime(hipGetDeviceProperties(&properties, i), "cudaGetDeviceProperties");
    text += fmt::format(
        "GPU {}: {}, {} SMs, {} copy engines\n", i, properties.name, properties.multiProcessorCount,
        properties.asyncEngineCount);
  }
  text += fmt::format("paths by a table measured on {}\n", table_source());
  return text;
}

} // namespace ferry::nvidia
