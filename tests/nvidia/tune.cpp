// SPDX-License-Identifier: MIT
// Not a test: tries rows of the table on this machine, beside NCCL in its three modes, and prints a
// line of JSON for each. Arguments: operations (a, g, b), then sizes of a block as powers of two,
// first and last.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "apps/ferry-bench/device/nccl.hpp"
#include "lib/nvidia/backend.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "lib/nvidia/owners.hpp"
#include "tests/nvidia/exchange.hpp"

namespace ferry::test {

namespace {

using core::Operation;
using nvidia::check_runtime;
using nvidia::Path;
using nvidia::Row;

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = kKiB * kKiB;
constexpr int kBatches = 7;

struct Timing {
  float median = 0; // microseconds
  float least = 0;
};

// Times `each` calls in a row, in batches; of the slowest rank.
template <class Queue>
Timing time_calls(ProcessTeam& team, hipStream_t stream, int each, const Queue& queue) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check_runtime(cudaEventCreate(&begin), "cudaEventCreate");
  check_runtime(cudaEventCreate(&end), "cudaEventCreate");
  for (int i = 0; i < 5; ++i) queue();
  check_runtime(hipStreamSynchronize(stream), "warm-up");
  std::vector<float> times;
  for (int batch = 0; batch < kBatches; ++batch) {
    team.barrier();
    check_runtime(hipEventRecord(begin, stream), "cudaEventRecord");
    for (int i = 0; i < each; ++i) queue();
    check_runtime(hipEventRecord(end, stream), "cudaEventRecord");
    check_runtime(hipStreamSynchronize(stream), "timed calls");
    float milliseconds = 0;
    check_runtime(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    const float mine = milliseconds * 1e3F / static_cast<float>(each);
    std::vector<float> all(static_cast<std::size_t>(team.ranks()));
    team.allgather(&mine, sizeof mine, all.data());
    times.push_back(*std::max_element(all.begin(), all.end()));
  }
  hipEventDestroy(begin);
  hipEventDestroy(end);
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front()};
}

template <class Queue>
Timing time_graph(ProcessTeam& team, hipStream_t stream, int each, const Queue& queue) {
  constexpr int kOfGraph = 20;
  check_runtime(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "capture");
  for (int i = 0; i < kOfGraph; ++i) queue();
  hipGraph_t graph = nullptr;
  check_runtime(cudaStreamEndCapture(stream, &graph), "end of capture");
  hipGraphExec_t exec = nullptr;
  check_runtime(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  const auto replay = [&] { check_runtime(cudaGraphLaunch(exec, stream), "cudaGraphLaunch"); };
  Timing t = time_calls(team, stream, std::max(1, each / kOfGraph), replay);
  check_runtime(cudaGraphExecDestroy(exec), "destroy");
  check_runtime(cudaGraphDestroy(graph), "destroy");
  t.median /= kOfGraph;
  t.least /= kOfGraph;
  return t;
}

int calls_of(std::uint64_t bytes) {
  const double expected = 10e-6 + static_cast<double>(bytes) / 300e9;
  return std::clamp(static_cast<int>(4e-3 / expected), 5, 300);
}

std::vector<Row> candidates(Operation operation, std::uint64_t bytes) {
  std::vector<Row> rows;
  const bool own = operation != Operation::broadcast;
  for (const int blocks : {1, 2, 4, 8, 16, 32, 64, 128}) {
    const auto each = bytes / static_cast<std::uint64_t>(blocks);
    const bool fits = (blocks == 1 || each >= 2 * kKiB) && each <= 64 * kKiB;
    if (fits && bytes <= 256 * kKiB) rows.push_back({operation, 0, Path::words, blocks, 0, 0, 0});
    if (fits && bytes >= 16 * kKiB) rows.push_back({operation, 0, Path::lines, blocks, 0, 0, 0});
  }
  if (bytes >= 512 * kKiB && bytes <= 64 * kMiB) {
    for (const int blocks : {32, 64, 96, 128}) {
      rows.push_back({operation, 0, Path::push, blocks, own ? 64 : 0, 100, 0});
    }
  }
  if (bytes >= 4 * kMiB) {
    for (const int percent : {5, 10, 20, 60, 70, 80, 90}) {
      const int blocks = percent < 40 ? 16 : 64;
      rows.push_back({operation, 0, Path::engines, blocks, own ? 32 : 0, percent, 1});
    }
    for (const int lanes : {1, 2}) rows.push_back({operation, 0, Path::engines, 0, 0, 0, lanes});
    // What stays by a few workgroups, which leave the links more of the memory's time than the
    // runtime's copy, whose kernel takes all SMs.
    for (const int blocks : {8, 16, 32}) {
      if (own) rows.push_back({operation, 0, Path::engines, 0, blocks, 0, 1});
    }
  }
  return rows;
}

const char* name_of(Path path) {
  return path == Path::words   ? "words"
         : path == Path::lines ? "lines"
         : path == Path::push  ? "push"
                               : "engines";
}

class Tuner {
 public:
  explicit Tuner(ProcessTeam& team) : team_(team) {
    for (const bench::NcclMode mode : bench::kNcclModes) {
      nccl_.push_back(std::make_unique<bench::Nccl>(
          mode, team.rank(), team.ranks(), [&](void* data, std::size_t bytes) {
            std::vector<char> all(bytes * static_cast<std::size_t>(team.ranks()));
            team.allgather(data, bytes, all.data());
            std::copy_n(all.begin(), bytes, static_cast<char*>(data));
          }));
    }
  }

  void run(Operation operation, std::uint64_t bytes, std::uint64_t longest) {
    const auto ranks = static_cast<std::uint64_t>(team_.ranks());
    if (buffers_.empty()) {
      for (auto& nccl : nccl_) {
        buffers_.push_back(nccl->allocate(longest * ranks));
        buffers_.push_back(nccl->allocate(longest * ranks));
      }
    }
    const int each = calls_of(bytes);
    for (std::size_t i = 0; i < nccl_.size(); ++i) {
      const auto queue = [&] { call(*nccl_[i], operation, bytes, i); };
      const Timing t = time_calls(team_, stream_.get(), each, queue);
      print(operation, bytes, std::string("nccl ") + name_of(bench::kNcclModes[i]), t, {});
    }
    for (const Row& row : candidates(operation, bytes)) {
      backend_.use_table({&row, 1});
      const Exchange exchange({operation, bytes}, team_, backend_);
      const bool checks = bytes <= 16 * kMiB; // the host's part of it takes long
      if (checks) exchange.fill(1);
      const auto queue = [&] { exchange.plan().start_on_stream(stream_.get()); };
      const Timing t = time_calls(team_, stream_.get(), each, queue);
      Timing graph;
      if (bytes <= 4 * kMiB) graph = time_graph(team_, stream_.get(), each, queue);
      const std::string wrong = checks ? exchange.check(1) : "";
      const std::string what = fmt::format(
          "{} {}+{} {}% x{}{}", name_of(row.path), row.push_blocks, row.own_blocks,
          row.kernel_percent, row.lanes, wrong.empty() ? "" : " WRONG");
      print(operation, bytes, what, t, graph);
    }
  }

 private:
  void call(bench::Nccl& nccl, Operation operation, std::uint64_t bytes, std::size_t i) {
    void* const send = buffers_[2 * i];
    void* const recv = buffers_[2 * i + 1];
    if (operation == Operation::alltoall) nccl.alltoall(send, recv, bytes, stream_.get());
    if (operation == Operation::allgather) nccl.allgather(send, recv, bytes, stream_.get());
    if (operation == Operation::broadcast) nccl.broadcast(send, recv, bytes, 0, stream_.get());
  }

  void print(
      Operation operation, std::uint64_t bytes, const std::string& what, Timing t, Timing graph) {
    if (team_.rank() != 0) return;
    fmt::print(
        "{{\"op\":\"{}\",\"block\":{},\"what\":\"{}\",\"us\":{:.2f},\"min\":{:.2f},\"graph\":"
        "{:.2f},\"gbs\":{:.1f}}}\n",
        core::name_of(operation), bytes, what, t.median, t.least, graph.median,
        static_cast<double>(bytes) / t.median / 1e3);
    std::fflush(stdout);
  }

  ProcessTeam& team_;
  nvidia::Stream stream_;
  nvidia::Backend backend_;
  std::vector<std::unique_ptr<bench::Nccl>> nccl_;
  std::vector<void*> buffers_;
};

int tune(ProcessTeam& team, const std::string& operations, int first, int last) {
  check_runtime(hipSetDevice(team.rank()), "cudaSetDevice");
  Tuner tuner(team);
  for (const char letter : operations) {
    const Operation operation = letter == 'a'   ? Operation::alltoall
                                : letter == 'g' ? Operation::allgather
                                                : Operation::broadcast;
    for (int power = first; power <= last; ++power) {
      tuner.run(operation, std::uint64_t{1} << power, std::uint64_t{1} << last);
    }
  }
  return 0;
}

} // namespace

} // namespace ferry::test

int main(int argc, char** argv) {
  using namespace ferry::test;
  if (argc != 4) {
    std::fputs("usage: nvidia-tune OPERATIONS FIRST LAST\n", stderr);
    return 2;
  }
  Job job;
  job.seconds = 400;
  job.body = [&](ProcessTeam& team) {
    return tune(team, argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
  };
  const std::vector<int> results = run_job(job);
  return std::all_of(results.begin(), results.end(), [](int r) { return r == 0; }) ? 0 : 1;
}
