// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ferry/ferry.h>
#include <mpi.h>

#include "apps/ferry-bench/device/call.hpp"
#include "apps/ferry-bench/device/gpu.hpp"
#include "apps/ferry-bench/device/nccl.hpp"

namespace ferry::bench {

// Who carries a call out, with buffers of its own.
class Side {
 public:
  Side() = default;
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  virtual ~Side() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string path() const { return ""; }
  // Collective: buffers, plans. Throws std::runtime_error.
  virtual void prepare(const DeviceCall& call) = 0;
  virtual void queue(GpuStream stream) = 0;
  [[nodiscard]] virtual void* send() const = 0;
  [[nodiscard]] virtual void* recv() const = 0;
};

[[nodiscard]] std::unique_ptr<Side> make_ferry_side(MPI_Comm comm);
// longest: bytes of the longest block that will be asked for.
[[nodiscard]] std::unique_ptr<Side> make_nccl_side(
    NcclMode mode, MPI_Comm comm, std::uint64_t longest);

// A persistent handle of Ferry for the call, with buffers as long as sent_by() and received_by()
// tell; collective.
[[nodiscard]] ferry_request make_request(
    const DeviceCall& call, void* send, void* recv, MPI_Comm comm);
// Data that only this round has into the buffers of the call, and how many bytes are wrong after
// it; of this rank.
void fill_buffers(
    void* send, void* recv, const DeviceCall& call, MPI_Comm comm, std::uint64_t round);
[[nodiscard]] std::uint64_t wrong_bytes(
    const void* recv, const DeviceCall& call, MPI_Comm comm, std::uint64_t round);
// Runs the call once with data that only this round has, and counts wrong bytes on all ranks.
[[nodiscard]] std::uint64_t check_side(
    Side& side, const DeviceCall& call, const OwnedStream& stream, MPI_Comm comm,
    std::uint64_t round);

} // namespace ferry::bench
