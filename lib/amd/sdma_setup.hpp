// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/amd/devices.hpp"
#include "lib/amd/program.hpp"
#include "lib/amd/sdma_plan.hpp"
#include "lib/exec/device_backend.hpp"

namespace ferry::amd {

// What the set-up of a plan may differ in.
struct SetUpOptions {
  std::uint64_t max_packet_bytes = std::uint64_t{128} << 20;
  std::uint64_t first = 0; // from which signal words count
  BadEngines barred; // engines that the user keeps Ferry from
};

struct SetUpInput {
  Devices& devices;
  QueueSource& source;
  core::DeviceTeam& team;
  const JobPlan& job;
  Buffers buffers;
  std::vector<int> nodes; // of each rank's GPU
  SetUpOptions options;
};

// A plan, or why there is none, alike on all ranks.
struct SetUpResult {
  std::unique_ptr<SdmaPlan> plan;
  core::Status status;
  bool again = false; // queues were found bad, and will not be used in another attempt
};

// Collective: queues, memory that peers map, a trial of each new queue, packets.
[[nodiscard]] SetUpResult set_up_sdma(const SetUpInput& input);

} // namespace ferry::amd
