// SPDX-License-Identifier: MIT
// A matrix product whose blocks belong to other ranks. Fused: each chunk of a block is put to its
// owner, by copy engines, as soon as its last tile is finished. Beside it what programs do today:
// the product, then an AlltoAll. Every value of both is checked.
//
//   mpiexec -n RANKS ferry-fused [ROWS COLUMNS DEPTH]
#include <cuda_runtime_api.h>
#include <ferry/ferry.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/ferry-fused/kernels.hpp"
#include "apps/gpu_program.hpp"

namespace ferry::fused {

namespace {

using apps::check;
using apps::check_ferry;
using apps::Times;

class Product {
 public:
  explicit Product(const Shape& shape)
      : shape_(shape),
        block_bytes_(std::uint64_t{shape.rows} * shape.columns * sizeof(float)),
        a_(std::uint64_t{shape.rows} * shape.depth * sizeof(float)),
        b_(std::uint64_t{shape.ranks} * shape.columns * shape.depth * sizeof(float)),
        out_(block_bytes_ * shape.ranks),
        in_(block_bytes_ * shape.ranks),
        finished_(counters() * sizeof(unsigned)),
        counts_(2 * sizeof(std::uint64_t)) {
    operands_ = {
        static_cast<float*>(a_.get()), static_cast<float*>(b_.get()),
        static_cast<float*>(out_.get()), nullptr};
    launch_fill(
        shape_, static_cast<float*>(a_.get()), static_cast<float*>(b_.get()), stream_.get());
    check(cudaMemset(counts_.get(), 0, 2 * sizeof(std::uint64_t)), "cudaMemset");
    const auto bytes = static_cast<MPI_Aint>(block_bytes_ * shape.ranks);
    check_ferry(
        ferry_device_team_create(MPI_COMM_WORLD, in_.get(), bytes, out_.get(), bytes, &team_));
    check_ferry(ferry_device_team_handle(team_, &posting_.team, sizeof posting_.team));
    posting_.finished = static_cast<unsigned*>(finished_.get());
    posting_.failed = static_cast<std::uint64_t*>(counts_.get()) + 1;
    const auto count = static_cast<MPI_Count>(block_bytes_);
    check_ferry(ferry_alltoall_init(
        out_.get(), count, MPI_BYTE, in_.get(), count, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL,
        &alltoall_));
    stream_.synchronize();
  }
  ~Product() {
    ferry_request_free(&alltoall_);
    MPI_Barrier(MPI_COMM_WORLD);
    ferry_device_team_free(&team_);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  void product_alone() { launch_product(shape_, operands_, stream_.get()); }
  void alltoall_alone() { check_ferry(ferry_start_on_stream(alltoall_, stream_.get())); }
  void one_after_the_other() {
    product_alone();
    alltoall_alone();
  }
  void fused() {
    check(
        cudaMemsetAsync(finished_.get(), 0, counters() * sizeof(unsigned), stream_.get()),
        "cudaMemsetAsync");
    Operands operands = operands_;
    operands.own = static_cast<float*>(in_.get()) + shape_.rank * block_bytes_ / sizeof(float);
    ++posting_.run;
    launch_fused(shape_, operands, posting_, stream_.get());
  }

  // Once with poisoned results: how many values are wrong on all ranks.
  std::uint64_t wrong_values(const std::function<void()>& run) {
    check(cudaMemset(in_.get(), 0xff, block_bytes_ * shape_.ranks), "cudaMemset");
    check(cudaMemset(out_.get(), 0xff, block_bytes_ * shape_.ranks), "cudaMemset");
    return apps::wrong_on_all_ranks(stream_, team_, counts_.get(), run, [&] {
      launch_check(
          shape_, static_cast<float*>(in_.get()), static_cast<unsigned long long*>(counts_.get()),
          stream_.get());
    });
  }

  Times time(const std::function<void()>& run) { return apps::time_runs(stream_, run); }

 private:
  [[nodiscard]] std::size_t counters() const {
    return std::size_t{shape_.rows / kChunkRows} * shape_.ranks;
  }

  const Shape shape_;
  const std::uint64_t block_bytes_;
  bench::OwnedStream stream_;
  bench::GpuBuffer a_;
  bench::GpuBuffer b_;
  bench::GpuBuffer out_;
  bench::GpuBuffer in_;
  bench::GpuBuffer finished_;
  bench::GpuBuffer counts_; // wrong values, waits that gave up
  Operands operands_;
  Posting posting_;
  ferry_device_team team_ = FERRY_DEVICE_TEAM_NULL;
  ferry_request alltoall_ = FERRY_REQUEST_NULL;
};

int measure(const Shape& shape) {
  Product product(shape);
  const auto say = [&](const char* what, const Times& t) {
    if (shape.rank == 0) fmt::print("{:<34} {:>9.1f} us (least {:.1f})\n", what, t.median, t.least);
    std::fflush(stdout);
  };
  const auto fused = [&] { product.fused(); };
  const auto apart = [&] { product.one_after_the_other(); };
  std::uint64_t wrong = product.wrong_values(fused) + product.wrong_values(apart);
  say("product alone", product.time([&] { product.product_alone(); }));
  say("AlltoAll alone", product.time([&] { product.alltoall_alone(); }));
  const Times slow = product.time(apart);
  say("product, then AlltoAll", slow);
  const Times quick = product.time(fused);
  say("fused", quick);
  wrong += product.wrong_values(fused) + product.wrong_values(apart);
  if (shape.rank == 0) {
    fmt::print(
        "{} ranks, {} x {} x {}, {} bytes a block: {:.2f}x, {} values wrong\n", shape.ranks,
        shape.rows, shape.ranks * shape.columns, shape.depth,
        std::uint64_t{shape.rows} * shape.columns * sizeof(float), slow.median / quick.median,
        wrong);
  }
  return wrong == 0 ? 0 : 1;
}

std::uint32_t argument(const char* text, std::uint32_t unit) {
  const long value = std::atol(text);
  if (value > 0 && value <= 65536 && value % unit == 0) return static_cast<std::uint32_t>(value);
  throw std::runtime_error(fmt::format("'{}' is no multiple of {} up to 65536", text, unit));
}

int run(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Shape shape{static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(ranks), 8192, 2048, 128};
  if (argc != 1 && argc != 4) throw std::runtime_error("usage: ferry-fused [ROWS COLUMNS DEPTH]");
  if (argc == 4) {
    shape.rows = argument(argv[1], kChunkRows);
    shape.columns = argument(argv[2], kTile);
    shape.depth = argument(argv[3], kStep);
  }
  if (ranks < 2 || ranks > 256) throw std::runtime_error("from 2 to 256 ranks");
  bench::use_gpu(MPI_COMM_WORLD);
  return measure(shape);
}

} // namespace

} // namespace ferry::fused

int main(int argc, char** argv) {
  return ferry::apps::run_program("ferry-fused", argc, argv, ferry::fused::run);
}
