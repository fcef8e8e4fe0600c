// SPDX-License-Identifier: MIT
// Tokens go to the ranks of their experts and come back (a mixture of experts, one a rank). Fused:
// kernels put the rows of each rank as soon as they are made. Beside it what programs do today:
// kernels and Alltoallv in turns. Every value of both is checked.
//
//   mpiexec -n RANKS ferry-moe
#include <cuda_runtime_api.h>
#include <ferry/ferry.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "apps/ferry-moe/kernels.hpp"
#include "apps/gpu_program.hpp"

namespace ferry::moe {

namespace {

using apps::check;
using apps::check_ferry;

constexpr std::uint32_t kTokens = 8192; // of a rank
constexpr std::uint32_t kWidth = 4096;
constexpr std::uint32_t kWork = 256;
constexpr std::uint64_t kRowBytes = kWidth * sizeof(float);

std::size_t expert_of(std::uint64_t token, std::size_t ranks) {
  std::uint64_t x = (token + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9;
  return (x >> 33) % ranks;
}

float added_by(std::size_t expert) {
  return static_cast<float>(kWork * (expert + 1));
}

template <class T>
class OnGpu {
 public:
  explicit OnGpu(const std::vector<T>& data) : buffer_(data.size() * sizeof(T)) {
    check(
        cudaMemcpy(buffer_.get(), data.data(), data.size() * sizeof(T), cudaMemcpyDefault),
        "cudaMemcpy");
  }
  [[nodiscard]] T* get() const { return static_cast<T*>(buffer_.get()); }

 private:
  bench::GpuBuffer buffer_;
};

using Numbers = std::vector<std::uint64_t>;

// Who sends how many rows to whom, and where they lie.
struct Routes {
  Routes(std::size_t rank, std::size_t ranks)
      : counts(ranks * ranks), order(kTokens), added(kTokens), first(1), from(1) {
    const auto expert = [&](std::size_t r, std::uint64_t t) {
      return expert_of(r * kTokens + t, ranks);
    };
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::uint64_t t = 0; t < kTokens; ++t) ++counts[r * ranks + expert(r, t)];
    }
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return expert(rank, a) < expert(rank, b);
    });
    for (std::uint32_t t = 0; t < kTokens; ++t) added[t] = added_by(expert(rank, t));
    for (std::size_t p = 0; p < ranks; ++p) {
      first.push_back(first.back() + counts[rank * ranks + p]);
      from.push_back(from.back() + counts[p * ranks + rank]);
      std::uint64_t all = 0;
      for (std::size_t r = 0; r < ranks; ++r) all += counts[r * ranks + p];
      most = std::max(most, all);
    }
    for (std::size_t p = 0; p < ranks; ++p) {
      std::uint64_t before = 0; // of lower ranks at p
      std::uint64_t back = most; // rows of p for lower ranks; returned rows lie behind the others
      for (std::size_t r = 0; r < rank; ++r) {
        before += counts[r * ranks + p];
        back += counts[p * ranks + r];
      }
      there.push_back(before);
      home.push_back(back);
    }
  }
  Numbers counts; // [from][to]
  std::vector<std::uint32_t> order;
  std::vector<float> added;
  Numbers first; // rows that leave, by rank
  Numbers from; // rows that come, by rank
  Numbers there; // [p]: row of the window of p to which this rank's rows go
  Numbers home; // the same on the way back
  std::uint64_t most = 0; // rows that any rank gets
};

ferry_request alltoallv(const float* out, const Numbers& sent, float* in, const Numbers& got) {
  std::vector<MPI_Count> counts[2];
  std::vector<MPI_Aint> places[2];
  const Numbers* const rows[2] = {&sent, &got};
  for (std::size_t side = 0; side < 2; ++side) {
    const Numbers& of = *rows[side];
    for (std::size_t p = 0; p + 1 < of.size(); ++p) {
      counts[side].push_back(static_cast<MPI_Count>((of[p + 1] - of[p]) * kRowBytes));
      places[side].push_back(static_cast<MPI_Aint>(of[p] * kRowBytes));
    }
  }
  ferry_request request = FERRY_REQUEST_NULL;
  check_ferry(ferry_alltoallv_init(
      out, counts[0].data(), places[0].data(), MPI_BYTE, in, counts[1].data(), places[1].data(),
      MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
  return request;
}

class Layer {
 public:
  Layer(std::uint32_t rank, std::uint32_t ranks)
      : rank_(rank), ranks_(ranks), routes_(rank, ranks) {
    const std::uint64_t bytes = (routes_.most + kTokens) * kRowBytes;
    const auto length = static_cast<MPI_Aint>(bytes);
    check_ferry(ferry_device_team_create(
        MPI_COMM_WORLD, window_.get(), length, rows_.get(), length, &team_));
    check_ferry(ferry_device_team_handle(team_, &posting_.team, sizeof posting_.team));
    posting_.failed = counts_.get() + 1;
    leaving_ = {rank,         ranks,         kWidth,      kTokens, first_.get(),
                order_.get(), tokens_.get(), rows_.get(), 0,       0};
    const float* const in = window_.get();
    float* const done = rows_.get() + kTokens * kWidth;
    expert_ = {rank,    ranks, kWidth, routes_.from.back(),          from_.get(),
               nullptr, in,    done,   static_cast<float>(rank + 1), kWork};
    going_ = alltoallv(rows_.get(), routes_.first, window_.get(), routes_.from);
    coming_ = alltoallv(done, routes_.from, returned(), routes_.first);
    launch_fill(leaving_, first_token(), tokens_.get(), stream_.get());
    stream_.synchronize();
  }
  ~Layer() {
    ferry_request_free(&going_);
    ferry_request_free(&coming_);
    MPI_Barrier(MPI_COMM_WORLD);
    ferry_device_team_free(&team_);
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  void apart() {
    launch_rows(leaving_, stream_.get());
    check_ferry(ferry_start_on_stream(going_, stream_.get()));
    launch_rows(expert_, stream_.get());
    check_ferry(ferry_start_on_stream(coming_, stream_.get()));
    launch_scatter(leaving_, returned(), results_.get(), stream_.get());
  }
  void fused() {
    check(
        cudaMemsetAsync(finished_.get(), 0, 2 * ranks_ * sizeof(unsigned), stream_.get()),
        "cudaMemsetAsync");
    Posting p = posting_;
    p.to_row = there_.get();
    p.own = window_.get() + routes_.there[rank_] * kWidth;
    p.finished = finished_.get();
    p.signals = ++signals_;
    launch_rows_and_put(leaving_, p, stream_.get());
    p.to_row = home_.get();
    p.own = window_.get() + routes_.home[rank_] * kWidth;
    p.finished = finished_.get() + ranks_;
    p.signals = ++signals_;
    launch_rows_and_put(expert_, p, stream_.get());
    launch_scatter(leaving_, returned(), results_.get(), stream_.get());
  }

  // Once with poisoned results: how many values are wrong on all ranks.
  std::uint64_t wrong_values(const std::function<void()>& run) {
    const std::uint64_t bytes = (routes_.most + kTokens) * kRowBytes;
    check(cudaMemset(window_.get(), 0xff, bytes), "cudaMemset");
    check(cudaMemset(rows_.get(), 0xff, bytes), "cudaMemset");
    check(cudaMemset(results_.get(), 0xff, kTokens * kRowBytes), "cudaMemset");
    return apps::wrong_on_all_ranks(stream_, team_, counts_.get(), run, [&] {
      launch_check(
          leaving_, first_token(), results_.get(), added_.get(),
          reinterpret_cast<unsigned long long*>(counts_.get()), stream_.get());
    });
  }

  // Median microseconds of the slowest rank.
  double time(const std::function<void()>& run) { return apps::time_runs(stream_, run).median; }

 private:
  [[nodiscard]] std::uint64_t first_token() const { return std::uint64_t{rank_} * kTokens; }
  [[nodiscard]] float* returned() const { return window_.get() + routes_.most * kWidth; }
  [[nodiscard]] std::vector<float> zeros(std::uint64_t rows) const {
    return std::vector<float>(rows * kWidth);
  }

  const std::uint32_t rank_;
  const std::uint32_t ranks_;
  const Routes routes_;
  bench::OwnedStream stream_;
  OnGpu<float> tokens_{zeros(kTokens)};
  OnGpu<float> results_{zeros(kTokens)};
  OnGpu<float> rows_{zeros(routes_.most + kTokens)}; // those that leave, then those of the expert
  OnGpu<float> window_{zeros(routes_.most + kTokens)}; // those that come, then those returned
  OnGpu<std::uint32_t> order_{routes_.order};
  OnGpu<float> added_{routes_.added};
  OnGpu<std::uint64_t> first_{routes_.first};
  OnGpu<std::uint64_t> from_{routes_.from};
  OnGpu<std::uint64_t> there_{routes_.there};
  OnGpu<std::uint64_t> home_{routes_.home};
  OnGpu<unsigned> finished_{std::vector<unsigned>(2 * std::size_t{ranks_})};
  OnGpu<std::uint64_t> counts_{Numbers(2)}; // wrong values, waits that gave up
  Rows leaving_;
  Rows expert_;
  Posting posting_;
  std::uint64_t signals_ = 0;
  ferry_device_team team_ = FERRY_DEVICE_TEAM_NULL;
  ferry_request going_ = FERRY_REQUEST_NULL;
  ferry_request coming_ = FERRY_REQUEST_NULL;
};

int run() {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2 || ranks > 256) throw std::runtime_error("from 2 to 256 ranks");
  bench::use_gpu(MPI_COMM_WORLD);
  Layer layer(static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(ranks));
  const auto fused = [&] { layer.fused(); };
  const auto apart = [&] { layer.apart(); };
  std::uint64_t wrong = layer.wrong_values(fused) + layer.wrong_values(apart);
  const double slow = layer.time(apart);
  const double quick = layer.time(fused);
  wrong += layer.wrong_values(fused) + layer.wrong_values(apart);
  if (rank == 0) {
    fmt::print(
        "{} ranks, {} tokens of {} bytes each: kernels and Alltoallv {:.1f} us, fused {:.1f} us: "
        "{:.2f}x, {} values wrong\n",
        ranks, kTokens, kRowBytes, slow, quick, slow / quick, wrong);
  }
  return wrong == 0 ? 0 : 1;
}

} // namespace

} // namespace ferry::moe

int main(int argc, char** argv) {
  return ferry::apps::run_program(
      "ferry-moe", argc, argv, [](int, char**) { return ferry::moe::run(); });
}
