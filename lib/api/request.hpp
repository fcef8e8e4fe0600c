// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "include/ferry/ferry.h"
#include "lib/exec/communicator.hpp"

// What a ferry_request points to: a non-blocking operation or a persistent plan.
struct ferry_request_s {
  std::shared_ptr<ferry::core::Communicator> state;
  MPI_Comm comm = MPI_COMM_NULL;
  bool quiet = false;
  bool started = false; // from start until test or wait has told the user of completion
  ferry::core::LaneOp op;
  std::unique_ptr<ferry::core::PersistentPlan> plan; // null for a non-blocking operation
  std::string why;

  [[nodiscard]] bool persistent() const { return plan != nullptr; }
};

namespace ferry::core {

// What the handles of ferry.h and the requests of the preload library share. An error is not
// reported here.

// Of a persistent request that is not started.
[[nodiscard]] Status start_request(ferry_request_s& request);
// Drives it; ready when it is complete, which end_request() then takes note of.
[[nodiscard]] Poll look_request(ferry_request_s& request);
// Waits within the bounds of every wait, then like end_request().
[[nodiscard]] Status wait_request(ferry_request_s& request);
// The user is told of completion: the request is not started any more. The outcome.
[[nodiscard]] Status end_request(ferry_request_s& request);

} // namespace ferry::core
