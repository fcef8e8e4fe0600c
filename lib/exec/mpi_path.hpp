// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>
#include <memory>
#include <vector>

#include "lib/base/wait.hpp"
#include "lib/schedule/collective.hpp"

namespace ferry::core {

// Keeps the user's communicator alive, even when the user frees it: a persistent request that moves
// nothing refers to it.
class CommHold {
 public:
  CommHold() = default;
  CommHold(const CommHold&) = delete;
  CommHold& operator=(const CommHold&) = delete;
  ~CommHold() { release(); }
  void hold(MPI_Comm comm);
  void release();

 private:
  MPI_Request token_ = MPI_REQUEST_NULL;
};

// One collective carried by the MPI below, on the user's communicator: for ranks that cannot share
// memory, and with FERRY=off. Starts at once, so that the order of calls is kept.
class MpiPath {
 public:
  // The errors of the MPI below come back as status; its error handler has seen them already.
  void start(MPI_Comm comm, const CollectiveDesc& desc);
  // A regular one to its end, packed, by the blocking function of the same name: other ranks may
  // make that call by themselves.
  void run_packed(MPI_Comm comm, const CollectiveDesc& desc);
  Poll progress();
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  void note(int code);
  void start_regular(
      MPI_Comm comm, const CollectiveDesc& desc, const std::byte* from, std::byte* recv);
  void start_reduction(MPI_Comm comm, const CollectiveDesc& desc);
  void start_exchange(MPI_Comm comm, const CollectiveDesc& desc);
  void pack_all(MPI_Comm comm, const CollectiveDesc& desc);
  void unpack_all();

  struct Shares {
    std::vector<MPI_Count> bytes;
    std::vector<MPI_Aint> at;
    void add(std::uint64_t more);
  };
  // Blocks with gaps, packed one behind the other; of others only the shares, with no ranks.
  struct Packed {
    CollectiveDesc desc;
    int rank = 0;
    int ranks = 0;
    std::vector<std::byte> send;
    std::vector<std::byte> recv;
    Shares out; // read by the MPI below until the end
    Shares in;
  };
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::unique_ptr<Packed> packed_;
  Status status_;
};

} // namespace ferry::core
