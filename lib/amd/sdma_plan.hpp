// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/amd/armed_ring.hpp"
#include "lib/amd/ipc_cache.hpp"
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
  std::uint64_t first = 0; // from which the trigger counts
  bool in_hardware = false;
  std::string label; // "alltoall on MPI_COMM_WORLD"
  std::string why;
  std::vector<ArmedRing> rings; // last: they end before the memory that their packets name
};

// A collective that copy engines carry out by themselves: a start is one increment of the trigger,
// made by the host, at a point in a stream, or by a kernel.
class SdmaPlan final : public core::DevicePlan {
 public:
  SdmaPlan(const Runtime& runtime, SdmaParts parts);
  ~SdmaPlan() override;

  void start() override;
  void start_on_stream(void* stream) override;
  [[nodiscard]] core::Poll progress() override;
  [[nodiscard]] const core::Status& status() const override { return status_; }
  [[nodiscard]] std::string missing() const override;
  [[nodiscard]] std::string explain() const override { return parts_.why; }

  // More about the choice of the path, behind what explain() says.
  void tell_why(const std::string& more) { parts_.why += more; }

  // Programs up to `epochs` starts ahead, and tells for how many there was room. From then on
  // whoever adds 1 to trigger() starts; the result is there when done() has counted it.
  std::uint64_t arm(std::uint64_t epochs);
  [[nodiscard]] std::uint64_t* trigger() const { return parts_.control.trigger(); }
  [[nodiscard]] std::uint64_t done() const;
  [[nodiscard]] std::uint64_t started() const;

 private:
  bool arm_next();
  void fail(const core::Status& status);
  static void run_on_stream(void* self);

  const Runtime& runtime_;
  SdmaParts parts_;
  std::uint64_t armed_ = 0; // epochs
  core::Status status_;
};

} // namespace ferry::amd
