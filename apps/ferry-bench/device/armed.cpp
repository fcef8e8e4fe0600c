// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/device/armed.hpp"

#include <memory>
#include <stdexcept>

#include <ferry/ferry.h>

#include "apps/ferry-bench/device/kernels.hpp"
#include "apps/ferry-bench/device/sides.hpp"

namespace ferry::bench {

namespace {

void check(int rc) {
  if (rc != MPI_SUCCESS) throw std::runtime_error(ferry_error_text());
}

struct Freed {
  void operator()(ferry_request_s* request) const { ferry_request_free(&request); }
};

} // namespace

ArmedTime time_armed(
    const DeviceCall& call, int starts, const OwnedStream& stream, MPI_Comm comm,
    std::uint64_t round) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const GpuBuffer send(sent_by(call, rank, ranks).all);
  const GpuBuffer recv(received_by(call, rank, ranks).all);
  const GpuBuffer counts(2 * sizeof(std::uint64_t));
  write_gpu(counts.get(), std::vector<unsigned char>(2 * sizeof(std::uint64_t)));
  load_releases();
  const std::unique_ptr<ferry_request_s, Freed> request(
      make_request(call, send.get(), recv.get(), comm));
  fill_buffers(send.get(), recv.get(), call, comm, round);
  device::StartHandle handle;
  check(ferry_arm(request.get(), starts, &handle, sizeof handle));
  MPI_Barrier(comm);
  auto* const words = static_cast<std::uint64_t*>(counts.get());
  launch_releases({handle, words, words + 1}, stream.get());
  stream.synchronize();
  const std::vector<unsigned char> seen = read_gpu(counts.get(), 2 * sizeof(std::uint64_t));
  std::uint64_t values[2];
  std::copy(seen.begin(), seen.end(), reinterpret_cast<unsigned char*>(values));
  if (values[1] != 0) throw std::runtime_error("a start that a kernel made did not end");
  ArmedTime time;
  time.us = static_cast<double>(values[0]) / starts / 1e3;
  time.wrong = wrong_bytes(recv.get(), call, comm, round);
  MPI_Allreduce(MPI_IN_PLACE, &time.wrong, 1, MPI_UINT64_T, MPI_SUM, comm);
  char text[512] = "";
  ferry_explain(request.get(), text, sizeof text);
  time.path = text;
  MPI_Barrier(comm); // nobody frees what a peer still reads
  return time;
}

} // namespace ferry::bench
