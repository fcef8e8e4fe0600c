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
