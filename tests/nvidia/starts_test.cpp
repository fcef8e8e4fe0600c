// SPDX-License-Identifier: MIT
// Starts that the host does not make: on streams, from graphs, and by a kernel.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "lib/nvidia/backend.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "tests/nvidia/check_kernels.hpp"
#include "tests/nvidia/exchange.hpp"

namespace ferry::test {

namespace {

using core::Operation;
using nvidia::check_runtime;
using nvidia::Path;
using nvidia::Row;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct Setting {
  Path path;
  std::uint64_t bytes;
  int rounds;
  bool one_gpu = false; // for all ranks
};

// A call, the kernels that fill and check its buffers, and a stream.
class Rig {
 public:
  Rig(ProcessTeam& team, const Setting& setting) : row_(row(setting.path)) {
    int devices = 0;
    check_runtime(hipGetDeviceCount(&devices), "cudaGetDeviceCount");
    const int device = setting.one_gpu ? 0 : team.rank() % devices;
    check_runtime(hipSetDevice(device), "cudaSetDevice");
    backend_.emplace();
    backend_->use_table({&row_, 1});
    counts_ = nvidia::DeviceBlock(64);
    stream_.emplace();
    exchange_.emplace(Call{Operation::alltoall, setting.bytes}, team, *backend_);
    rounds_ = {
        reinterpret_cast<std::uint32_t*>(exchange_->send().get()),
        reinterpret_cast<const std::uint32_t*>(exchange_->recv().get()),
        setting.bytes / 4,
        team.rank(),
        team.ranks(),
        counts_.at<std::uint64_t>(0),
        counts_.at<std::uint64_t>(8)};
  }

  [[nodiscard]] hipStream_t stream() const { return stream_->get(); }
  [[nodiscard]] core::DevicePlan& plan() const { return exchange_->plan(); }
  [[nodiscard]] const Exchange& exchange() const { return *exchange_; }
  [[nodiscard]] std::uint64_t* counter(int i) const {
    return counts_.at<std::uint64_t>(static_cast<std::size_t>(i) * 8);
  }

  void queue_round() const {
    launch_fill(rounds_, stream());
    plan().start_on_stream(stream());
    launch_check(rounds_, stream());
  }
  void fill() const { launch_fill(rounds_, stream()); }
  void check() const { launch_check(rounds_, stream()); }

  // "" or how many words of how many rounds were wrong.
  [[nodiscard]] std::string result(std::uint64_t expected_rounds) const {
    check_runtime(hipStreamSynchronize(stream()), "cudaStreamSynchronize");
    std::uint64_t counts[2] = {};
    check_runtime(hipMemcpy(counts, counts_.get(), sizeof counts, hipMemcpyDefault), "cudaMemcpy");
    if (counts[0] == expected_rounds && counts[1] == 0) return "";
    return fmt::format(
        "{} words wrong in {} of {} rounds ({})", counts[1], counts[0], expected_rounds,
        plan().explain());
  }

 private:
  static Row row(Path path) {
    return {
        Operation::alltoall,
        ~std::uint64_t{0},
        path,
        4,
        path == Path::words || path == Path::lines ? 0 : 2,
        20,
        2};
  }

  const Row row_;
  std::optional<nvidia::Backend> backend_;
  nvidia::DeviceBlock counts_;
  std::optional<nvidia::Stream> stream_;
  std::optional<Exchange> exchange_;
  Rounds rounds_{};
};

int report(const std::string& wrong) {
  if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

std::vector<int> run_pair(
    const Setting& setting, int (*body)(Rig&, const Setting&), bool threads = false) {
  Job job;
  job.threads = threads;
  // A kernel that is loaded late would wait for streams that wait for it.
  job.set_up = [](int) { setenv("CUDA_MODULE_LOADING", "EAGER", 1); };
  job.body = [&](ProcessTeam& team) {
    Rig rig(team, setting);
    team.barrier();
    const int result = body(rig, setting);
    team.barrier();
    return result;
  };
  return run_job(job);
}

int run_stream(Rig& rig, const Setting& setting) {
  for (int i = 0; i < setting.rounds; ++i) rig.queue_round();
  return report(rig.result(static_cast<std::uint64_t>(setting.rounds)));
}

// Starts from the host and on a stream come before, between and after replays.
int run_graph(Rig& rig, const Setting& setting) {
  constexpr int kRoundsOfGraph = 4;
  if (report(rig.exchange().run(1)) != 0) return 1;
  rig.queue_round();
  check_runtime(cudaStreamBeginCapture(rig.stream(), cudaStreamCaptureModeGlobal), "capture");
  for (int i = 0; i < kRoundsOfGraph; ++i) rig.queue_round();
  hipGraph_t graph = nullptr;
  check_runtime(cudaStreamEndCapture(rig.stream(), &graph), "end of capture");
  hipGraphExec_t exec = nullptr;
  check_runtime(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  const int replays = setting.rounds / kRoundsOfGraph;
  for (int i = 0; i < replays; ++i) {
    check_runtime(cudaGraphLaunch(exec, rig.stream()), "cudaGraphLaunch");
    if (i == replays / 2) rig.queue_round();
    if (i % 1000 == 0) check_runtime(hipStreamSynchronize(rig.stream()), "synchronize");
  }
  const auto expected = static_cast<std::uint64_t>(2 + replays * kRoundsOfGraph);
  if (report(rig.result(expected)) != 0) return 1;
  if (report(rig.exchange().run(2)) != 0) return 1;
  check_runtime(cudaGraphExecDestroy(exec), "destroy");
  check_runtime(cudaGraphDestroy(graph), "destroy");
  return 0;
}

int run_armed(Rig& rig, const Setting& setting) {
  const device::StartHandle starts = rig.plan().arm(setting.rounds);
  rig.fill();
  launch_releases({starts, rig.counter(2), rig.counter(3)}, rig.stream());
  rig.check();
  if (report(rig.result(1)) != 0) return 1;
  std::uint64_t seen[2] = {};
  check_runtime(hipMemcpy(seen, rig.counter(2), sizeof seen, hipMemcpyDefault), "cudaMemcpy");
  if (seen[1] != 0) return report("the kernel gave up");
  std::printf(
      "released by a kernel, %d starts, %s: %.2f us each\n", setting.rounds,
      rig.plan().explain().c_str(), static_cast<double>(seen[0]) / setting.rounds / 1e3);
  return 0;
}

void check_all_good(const std::vector<int>& results) {
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    CHECK_MESSAGE(results[rank] == 0, "rank ", rank, " returned ", results[rank]);
  }
}

// Rank 1 ends without ever starting; rank 0's stream comes to its end all the same.
int run_abandoned(Rig& rig, const Setting& setting) {
  if (setting.rounds == 0) return 0;
  rig.plan().start_on_stream(rig.stream());
  check_runtime(hipStreamSynchronize(rig.stream()), "cudaStreamSynchronize");
  return 0;
}

} // namespace

TEST_CASE("pair: a start on a stream whose peer has ended gives up") {
  Job job;
  job.set_up = [](int) { setenv("CUDA_MODULE_LOADING", "EAGER", 1); };
  job.body = [](ProcessTeam& team) {
    const Setting setting{Path::push, kMiB, team.rank() == 0 ? 1 : 0};
    Rig rig(team, setting);
    team.barrier();
    if (team.rank() == 1) return 3; // not 0: the parent then calls it dead
    return run_abandoned(rig, setting);
  };
  const std::vector<int> results = run_job(job);
  CHECK(results[0] == 0);
  CHECK(results[1] == 3);
}

TEST_CASE("pair: starts on a stream") {
  check_all_good(run_pair({Path::words, 4096, 2000}, run_stream));
  check_all_good(run_pair({Path::lines, 256 * 1024, 2000}, run_stream));
  check_all_good(run_pair({Path::push, kMiB, 1000}, run_stream));
  check_all_good(run_pair({Path::engines, 4 * kMiB, 500}, run_stream));
}

TEST_CASE("pair: replays of a graph, words") {
  check_all_good(run_pair({Path::words, 4096, 100'000}, run_graph));
}

TEST_CASE("pair: replays of a graph, lines") {
  check_all_good(run_pair({Path::lines, 65536, 100'000}, run_graph));
}

TEST_CASE("pair: replays of a graph, push") {
  check_all_good(run_pair({Path::push, 65536, 100'000}, run_graph));
}

TEST_CASE("pair: replays of a graph, engines") {
  check_all_good(run_pair({Path::engines, kMiB, 20'000}, run_graph));
}

// Ranks that share a GPU: by engines, and kernels of threads run at the same time.
TEST_CASE("one GPU: a kernel releases starts that were armed") {
  check_all_good(run_pair({Path::words, 8, 100, true}, run_armed, true));
  check_all_good(run_pair({Path::words, kMiB, 100, true}, run_armed, true));
}

TEST_CASE("one GPU: starts on a stream, and replays of a graph") {
  check_all_good(run_pair({Path::words, 4096, 500, true}, run_stream, true));
  check_all_good(
      run_pair({Path::words, 4096, 40, true}, run_graph)); // threads would share a capture
}

TEST_CASE("pair: a kernel releases starts that were armed") {
  check_all_good(run_pair({Path::words, 8, 100}, run_armed));
  check_all_good(run_pair({Path::push, kMiB, 100}, run_armed));
  check_all_good(run_pair({Path::engines, 4 * kMiB, 50}, run_armed));
}

} // namespace ferry::test
