// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "device/kernel.hpp"
#include "lib/amd/ipc_cache.hpp"
#include "lib/amd/kernel_device.hpp"
#include "lib/amd/kernels/kernels.hpp"
#include "lib/exec/device_backend.hpp"

namespace ferry::amd {

using KernelArguments = std::variant<device::LowLatencyArgs, device::WideArgs>;

// Everything that a plan on kernels holds on to.
struct KernelParts {
  KernelFunction kernel;
  KernelShape shape;
  KernelArguments arguments;
  std::vector<int> peers; // ranks, in the order of the kernel's table
  std::shared_ptr<device::KernelReport> report; // memory of the host
  std::shared_ptr<void> stream; // of start()
  std::vector<Mapping> mappings; // of all ranks' memory
  double patience = 0; // seconds; 0: no limit
  std::string label; // "persistent alltoall on MPI_COMM_WORLD"
  std::string why;
};

// A collective that one kernel carries out. Which start it is stands in memory of the GPU, so that
// a launch can be captured into a graph and replayed. Starts of a plan follow each other: on one
// stream, or each after the one before has ended.
class KernelPlan final : public core::DevicePlan {
 public:
  KernelPlan(const KernelDevices& devices, KernelParts parts);
  ~KernelPlan() override;

  void start() override;
  // Launches there, no host is involved. Throws Failure.
  void start_on_stream(void* stream) override;
  [[nodiscard]] core::Poll progress() override;
  [[nodiscard]] const core::Status& status() const override { return status_; }
  [[nodiscard]] std::string missing() const override;
  [[nodiscard]] std::string explain() const override { return parts_.why; }

  // More about the choice of the path, behind what explain() says.
  void tell_why(const std::string& more) { parts_.why += more; }

 private:
  [[nodiscard]] int launch(void* stream);
  void read_report();

  const KernelDevices& devices_;
  KernelParts parts_;
  std::uint64_t started_ = 0; // by start()
  bool running_ = false;
  core::Status status_;
};

} // namespace ferry::amd
