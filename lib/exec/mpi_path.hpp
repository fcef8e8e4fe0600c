// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include "lib/base/wait.hpp"
#include "lib/schedule/collective.hpp"

namespace ferry::core {

// One collective carried by the MPI below, on the user's communicator: for ranks that cannot share
// memory, and with FERRY=off. Starts at once, so that the order of calls is kept.
class MpiPath {
 public:
  MpiPath() = default;
  MpiPath(const MpiPath&) = delete;
  MpiPath& operator=(const MpiPath&) = delete;
  ~MpiPath();

  // Keep the communicator alive for later starts, even when the user frees it.
  void hold(MPI_Comm comm);
  // The errors of the MPI below come back as status; its error handler has seen them already.
  void start(MPI_Comm comm, const CollectiveDesc& desc);
  Poll progress();
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  void note(int code);
  MPI_Request request_ = MPI_REQUEST_NULL;
  MPI_Request hold_ = MPI_REQUEST_NULL;
  Status status_;
};

} // namespace ferry::core
