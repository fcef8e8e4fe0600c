// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/amd/armed_ring.hpp"
#include "lib/amd/devices.hpp"
#include "lib/amd/fault_board.hpp"
#include "lib/amd/ipc_cache.hpp"
#include "lib/amd/stream_starts.hpp"
#include "lib/exec/device_backend.hpp"

namespace ferry::amd {

// Words that the host shares with the engines of its GPU.
struct ControlPage {
  std::shared_ptr<std::uint64_t> page;
  [[nodiscard]] std::uint64_t* trigger() const { return page.get(); }
  [[nodiscard]] std::uint64_t* done() const { return page.get() + 8; } // another cache line
};

// Everything that a plan on copy engines holds on to.
struct SdmaParts {
  ControlPage control;
  std::vector<Mapping> mappings; // of all ranks' memory
  std::uint64_t first = 0; // from which trigger and completion count
  bool in_hardware = false;
  int node = 0; // of the GPU
  int rank = 0;
  std::vector<FaultBoard*> boards; // of all ranks
  std::string label; // "alltoall on MPI_COMM_WORLD"
  std::string why;
  std::vector<ArmedRing> rings; // last: they end before the memory that their packets name
};

// A collective that copy engines carry out by themselves: a start is one increment of the trigger,
// made by the host, at a point in a stream, or by a kernel. On streams a kernel of one lane makes
// it, unless it is captured, the host carries the packets out, or the rings are full: then a
// function on the host does, and goes on to do so for this plan.
class SdmaPlan final : public core::DevicePlan {
 public:
  SdmaPlan(Devices& devices, SdmaParts parts);
  ~SdmaPlan() override;

  void start() override;
  void start_on_stream(void* stream) override;
  [[nodiscard]] device::StartHandle arm(int starts) override;
  [[nodiscard]] core::Poll progress() override;
  [[nodiscard]] const core::Status& status() const override { return status_; }
  [[nodiscard]] std::string missing() const override;
  [[nodiscard]] std::string explain() const override { return parts_.why; }

  // More about the choice of the path, behind what explain() says.
  void tell_why(const std::string& more) { parts_.why += more; }

  // For how many starts more is there room in the rings?
  [[nodiscard]] std::uint64_t room() const;
  [[nodiscard]] std::uint64_t done() const;
  [[nodiscard]] std::uint64_t started() const;

 private:
  bool arm_next();
  // Of the last `starts` that were armed.
  [[nodiscard]] device::StartHandle handle_of(std::uint64_t starts) const;
  bool start_by_kernel(void* stream);
  void look_at_kernels();
  void look_at_faults();
  // Which ring it was.
  [[nodiscard]] core::Status describe(const GpuFault& fault) const;
  void fail(const core::Status& status);
  void fail_for_all(core::Status status);
  static void run_on_stream(void* self);

  Devices& devices_;
  SdmaParts parts_;
  std::uint64_t armed_ = 0; // epochs
  std::uint64_t handed_out_ = 0; // up to this epoch by handles
  bool on_host_; // starts on streams
  std::unique_ptr<StreamStarts> stream_starts_; // once there is one
  std::uint64_t faults_; // of all GPUs, that the plan knows of
  std::uint32_t looks_ = 0;
  core::Status status_;
};

} // namespace ferry::amd
