// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/device/run.hpp"
#include "apps/ferry-bench/crew.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "apps/ferry-bench/device/armed.hpp"
#include "apps/ferry-bench/device/options.hpp"
#include "apps/ferry-bench/device/product.hpp"
#include "apps/ferry-bench/device/sides.hpp"
#include "apps/ferry-bench/options.hpp"

namespace ferry::bench {

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr const char* kOverlap = "overlap";
constexpr int kCallsOfGraph = 20;
constexpr std::uint64_t kLongestInGraph = 8 * kMiB; // longer ones do not gain by it

struct Row {
  std::string operation;
  std::uint64_t bytes = 0;
  std::string side;
  std::string path;
  double median = 0;
  double least = 0;
  double graph = 0;
  std::uint64_t wrong = 0;
};

double slowest(double mine, MPI_Comm comm) {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, comm);
  return mine;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int calls_of(std::uint64_t bytes) {
  const double expected = 10e-6 + static_cast<double>(bytes) / 300e9;
  return std::clamp(static_cast<int>(5e-3 / expected), 5, 400);
}

class Table {
 public:
  Table(const DeviceOptions& options, MPI_Comm comm) : options_(options), comm_(comm) {
    MPI_Comm_rank(comm, &rank_);
    const std::uint64_t longest = *std::max_element(options.sizes.begin(), options.sizes.end());
    sides_.push_back(make_ferry_side(comm));
    if (!options.nccl) return;
    for (const NcclMode mode : kNcclModes) sides_.push_back(make_nccl_side(mode, comm, longest));
  }

  std::vector<Row> measure(const DeviceCall& call) {
    std::vector<Row> rows;
    std::vector<std::vector<double>> times(sides_.size());
    std::vector<std::vector<double>> graphs(sides_.size());
    const int calls = calls_of(call.bytes);
    std::vector<std::unique_ptr<CapturedCalls>> captured;
    for (const auto& side : sides_) {
      side->prepare(call);
      rows.push_back({name_of(call), call.bytes, side->name(), side->path()});
      rows.back().wrong = check_side(*side, call, stream_, comm_, ++round_);
      const Queue queue = [&side](GpuStream stream) { side->queue(stream); };
      const bool short_call = call.bytes <= kLongestInGraph;
      captured.push_back(
          short_call ? std::make_unique<CapturedCalls>(stream_, kCallsOfGraph, queue) : nullptr);
    }
    for (int round = -1; round < options_.rounds; ++round) { // the first one warms up
      for (std::size_t i = 0; i < sides_.size(); ++i) {
        const double us = timed(calls, [&](GpuStream stream) { sides_[i]->queue(stream); });
        if (round >= 0) times[i].push_back(us);
        if (captured[i] == nullptr) continue;
        const int replays = std::max(1, calls / kCallsOfGraph);
        const double graph =
            timed(replays, [&](GpuStream stream) { captured[i]->replay(stream); }) / kCallsOfGraph;
        if (round >= 0) graphs[i].push_back(graph);
      }
    }
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      rows[i].median = median_of(times[i]);
      rows[i].least = *std::min_element(times[i].begin(), times[i].end());
      if (!graphs[i].empty()) rows[i].graph = median_of(graphs[i]);
      rows[i].wrong += check_side(*sides_[i], call, stream_, comm_, ++round_);
    }
    return rows;
  }

  // Starts by a kernel, which only Ferry has.
  std::vector<Row> armed(const DeviceCall& call) {
    const int starts = std::clamp(calls_of(call.bytes), 5, 100);
    Row row{name_of(call) + "-armed", call.bytes, "ferry", ""};
    std::vector<double> times;
    for (int round = -1; round < std::min(options_.rounds, 3); ++round) {
      const ArmedTime time = time_armed(call, starts, stream_, comm_, ++round_);
      const double us = slowest(time.us, comm_);
      if (round >= 0) times.push_back(us);
      row.wrong += time.wrong;
      row.path = time.path;
    }
    row.median = median_of(times);
    row.least = *std::min_element(times.begin(), times.end());
    return {row};
  }

  // Products and calls of one side, alone and beside each other.
  std::vector<Row> overlap(const DeviceCall& call) {
    constexpr int kProducts = 40;
    constexpr int kCalls = 160;
    constexpr int kSide = 8192;
    Product product(kSide);
    const OwnedStream beside;
    std::vector<Row> rows;
    const Queue products = [&](GpuStream stream) { product.queue(stream); };
    for (const auto& side : sides_) {
      side->prepare(call);
      const Queue calls = [&side](GpuStream stream) { side->queue(stream); };
      timed(3, products);
      timed(3, calls);
      const double product_alone = timed(kProducts, products) * kProducts;
      const double calls_alone = timed(kCalls, calls) * kCalls;
      MPI_Barrier(comm_);
      const double begin = MPI_Wtime();
      for (int i = 0; i < kProducts; ++i) {
        product.queue(stream_.get());
        for (int k = 0; k < kCalls / kProducts; ++k) side->queue(beside.get());
      }
      stream_.synchronize();
      beside.synchronize();
      const double both = slowest((MPI_Wtime() - begin) * 1e6, comm_);
      const double ratio = both / std::max(product_alone, calls_alone);
      const double flops = product.operations() * kProducts / product_alone / 1e6;
      Row row{kOverlap, call.bytes, side->name(), ""};
      row.path = fmt::format(
          "{} products {:.0f} us ({:.0f} TFLOP/s), {} {} {:.0f} us, both {:.0f} us: {:.3f} of the "
          "longer",
          kProducts, product_alone, flops, kCalls, name_of(call), calls_alone, both, ratio);
      row.median = ratio;
      rows.push_back(row);
    }
    return rows;
  }

 private:
  double timed(int calls, const Queue& queue) {
    MPI_Barrier(comm_);
    return slowest(time_on_stream(stream_, calls, queue), comm_) / calls;
  }

  const DeviceOptions& options_;
  MPI_Comm comm_;
  int rank_ = 0;
  std::uint64_t round_ = 0;
  OwnedStream stream_;
  std::vector<std::unique_ptr<Side>> sides_;
};

void print(const std::vector<Row>& rows) {
  double best = 0;
  for (const Row& row : rows) {
    if (row.side == "ferry") continue;
    if (best == 0 || row.median < best) best = row.median;
  }
  for (const Row& row : rows) {
    const bool ours = row.side == "ferry" && best > 0 && row.operation != kOverlap;
    fmt::print(
        "{:<10} {:>10} {:<16} {:>9.2f} us  graph {:>8.2f} us  {:>6.1f} GB/s{}{}  {}\n",
        row.operation, row.bytes, row.side, row.median, row.graph,
        static_cast<double>(row.bytes) / row.median / 1e3,
        ours ? fmt::format("  {:.2f}x", best / row.median) : "",
        row.wrong != 0 ? fmt::format("  {} BYTES WRONG", row.wrong) : "", row.path);
  }
  std::fflush(stdout);
}

void write_json(const std::string& file, const std::vector<Row>& rows) {
  nlohmann::json all;
  all["machine"] = gpu_versions();
  for (const Row& row : rows) {
    all["rows"].push_back(
        {{"operation", row.operation},
         {"bytes", row.bytes},
         {"side", row.side},
         {"path", row.path},
         {"median_us", row.median},
         {"least_us", row.least},
         {"graph_us", row.graph},
         {"wrong", row.wrong}});
  }
  std::FILE* const out = file == "-" ? stdout : std::fopen(file.c_str(), "w");
  if (out == nullptr) throw std::runtime_error(fmt::format("{}: {}", file, std::strerror(errno)));
  fmt::print(out, "{}\n", all.dump(1));
  if (out != stdout) std::fclose(out);
}

int measure(const DeviceOptions& options, MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  alarm(static_cast<unsigned>(options.limit));
  use_gpu(comm);
  Table table(options, comm);
  std::vector<Row> rows;
  const auto keep = [&](const std::vector<Row>& more) {
    if (rank == 0) print(more);
    rows.insert(rows.end(), more.begin(), more.end());
    if (rank == 0 && !options.json.empty()) write_json(options.json, rows);
  };
  if (rank == 0) fmt::print("{}\n", gpu_versions());
  if (options.overlap) {
    const std::uint64_t longest = *std::max_element(options.sizes.begin(), options.sizes.end());
    for (const Wanted& wanted : options.operations) {
      keep(table.overlap({wanted.operation, longest, wanted.shape}));
    }
  } else {
    for (const Wanted& wanted : options.operations) {
      for (const std::uint64_t bytes : options.sizes) {
        const DeviceCall call{wanted.operation, bytes, wanted.shape};
        keep(wanted.armed ? table.armed(call) : table.measure(call));
      }
    }
  }
  const auto bad = [](const Row& row) { return row.wrong != 0; };
  return std::any_of(rows.begin(), rows.end(), bad) ? 1 : 0;
}

} // namespace

bool wants_device(int argc, const char* const* argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--memory") == 0 && std::strcmp(argv[i + 1], "device") == 0) {
      return true;
    }
  }
  return false;
}

int run_device(int argc, const char* const* argv, MPI_Comm comm) {
  try {
    setenv("CUDA_MODULE_LOADING", "EAGER", 0); // a late load would wait for armed starts
    return measure(parse_device(argc, argv), comm);
  } catch (const UsageError& error) {
    fmt::print(stderr, "ferry-bench: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "ferry-bench: {}\n", error.what());
    end_job(comm, 1);
  }
}

} // namespace ferry::bench
