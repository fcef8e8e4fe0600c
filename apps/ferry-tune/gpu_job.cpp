// SPDX-License-Identifier: MIT
#include "apps/ferry-tune/gpu_job.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <ferry/ferry.h>
#include <fmt/format.h>
#include <mpi.h>
#include <nlohmann/json.hpp>

#include "apps/ferry-tune/gpus.hpp"

namespace ferry::tune {
namespace {

constexpr int kWarmUps = 2;
constexpr const char* kOperations[] = {"alltoall", "allgather", "broadcast"};

void check(int code) {
  if (code != MPI_SUCCESS) throw std::runtime_error(ferry_error_text());
}

// A persistent collective of one size.
class Handle {
 public:
  Handle(const std::string& operation, void* send, void* recv, std::uint64_t bytes) {
    const auto count = static_cast<MPI_Count>(bytes);
    MPI_Comm comm = MPI_COMM_WORLD;
    if (operation == "broadcast") {
      check(ferry_bcast_init(recv, count, MPI_BYTE, 0, comm, MPI_INFO_NULL, &request_));
      return;
    }
    const auto init = operation == "alltoall" ? ferry_alltoall_init : ferry_allgather_init;
    check(init(send, count, MPI_BYTE, recv, count, MPI_BYTE, comm, MPI_INFO_NULL, &request_));
  }
  ~Handle() { ferry_request_free(&request_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  [[nodiscard]] std::string why() const {
    char text[2048] = "";
    check(ferry_explain(request_, text, sizeof text));
    return text;
  }
  // Microseconds of the slowest rank.
  [[nodiscard]] double time_start() {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    check(ferry_start(&request_));
    check(ferry_wait(&request_));
    double us = (MPI_Wtime() - begin) * 1e6;
    MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return us;
  }

 private:
  ferry_request request_ = FERRY_REQUEST_NULL;
};

std::vector<std::uint64_t> sizes_of(const std::string& list) {
  std::istringstream in(list);
  std::vector<std::uint64_t> sizes;
  for (std::string size; std::getline(in, size, ',');) sizes.push_back(std::stoull(size));
  return sizes;
}

void measure(const std::string& file, int iterations, const std::vector<std::uint64_t>& sizes) {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const Gpus gpus;
  gpus.use(rank % gpus.count());
  const std::size_t room =
      *std::max_element(sizes.begin(), sizes.end()) * static_cast<std::size_t>(ranks);
  const Gpus::Memory send = gpus.allocate(room);
  const Gpus::Memory recv = gpus.allocate(room);
  nlohmann::json rows;
  for (const std::string operation : kOperations) {
    for (const std::uint64_t bytes : sizes) {
      Handle handle(operation, send.get(), recv.get(), bytes);
      double least = std::numeric_limits<double>::max();
      for (int i = -kWarmUps; i < iterations; ++i) {
        const double us = handle.time_start();
        if (i >= 0) least = std::min(least, us);
      }
      rows.push_back({{"operation", operation}, {"us", least}, {"why", handle.why()}});
    }
  }
  if (rank != 0) return;
  std::ofstream(file) << rows.dump() << std::flush;
}

} // namespace

int run_gpu_job(int argc, char** argv) {
  if (argc != 5) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  try {
    measure(argv[2], std::atoi(argv[3]), sizes_of(argv[4]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "ferry-tune: {}\n", error.what());
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}

} // namespace ferry::tune
