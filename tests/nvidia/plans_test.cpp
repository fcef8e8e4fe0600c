// SPDX-License-Identifier: MIT
// Plans on real GPUs, ranks as processes. Without a GPU every case is skipped by main().
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "lib/nvidia/backend.hpp"
#include "lib/nvidia/check.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"
#include "tests/nvidia/exchange.hpp"

namespace ferry::test {

namespace {

using core::Operation;
using nvidia::Path;
using nvidia::Row;

constexpr Operation kOperations[] = {
    Operation::alltoall, Operation::allgather, Operation::broadcast};
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

void use_gpu(int rank) {
  int devices = 0;
  nvidia::check_runtime(hipGetDeviceCount(&devices), "cudaGetDeviceCount");
  nvidia::check_runtime(hipSetDevice(rank % devices), "cudaSetDevice");
}

std::vector<Row> everything_by(Path path, int percent = 20) {
  std::vector<Row> rows;
  for (const Operation operation : kOperations) {
    rows.push_back({operation, ~std::uint64_t{0}, path, 5, 3, percent, 2});
  }
  return rows;
}

int report(const std::string& wrong) {
  if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

// Every operation, size, alignment and root on one path.
int run_grid(ProcessTeam& team, nvidia::Backend& backend, std::uint64_t longest) {
  const std::uint64_t sizes[] = {1, 7, 8, 13, 256, 4096, 4097, 65536, 300'001, kMiB, 9 * kMiB + 5};
  std::uint64_t iteration = 1;
  for (const Operation operation : kOperations) {
    for (const std::uint64_t bytes : sizes) {
      if (bytes > longest) continue;
      for (int variant = 0; variant < 4; ++variant) {
        Call call{operation, bytes};
        call.in_place = variant % 2 == 1 && operation != Operation::broadcast;
        call.shift = variant / 2 == 1 ? 3 : 0;
        call.root = variant % team.ranks();
        const Exchange exchange(call, team, backend);
        for (int i = 0; i < 5; ++i) {
          if (report(exchange.run(iteration++)) != 0) return 1;
        }
      }
    }
  }
  return 0;
}

std::vector<int> run_grid_job(int ranks, const std::vector<Row>& rows, std::uint64_t longest) {
  Job job;
  job.ranks = ranks;
  job.body = [&](ProcessTeam& team) {
    use_gpu(team.rank());
    nvidia::Backend backend;
    if (!rows.empty()) backend.use_table(rows);
    return run_grid(team, backend, longest);
  };
  return run_job(job);
}

void check_all_good(const std::vector<int>& results) {
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    CHECK_MESSAGE(results[rank] == 0, "rank ", rank, " returned ", results[rank]);
  }
}

// One call for each operation, started several times.
int run_calls(ProcessTeam& team, nvidia::Backend& backend, Call call, const char* expected) {
  for (const Operation operation : kOperations) {
    for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{70'000}, 3 * kMiB + 1}) {
      call.operation = operation;
      call.bytes = bytes;
      const Exchange exchange(call, team, backend);
      const std::string explained = exchange.plan().explain();
      if (explained.find(expected) == std::string::npos) {
        return report(fmt::format("'{}' lacks '{}'", explained, expected));
      }
      for (std::uint64_t i = 1; i < 4; ++i) {
        if (report(exchange.run(i)) != 0) return 1;
      }
    }
  }
  return 0;
}

} // namespace

TEST_CASE("grid: by the table") {
  check_all_good(run_grid_job(visible_gpus() > 1 ? 2 : 1, {}, 64 * kMiB));
}

TEST_CASE("pair: words") {
  check_all_good(run_grid_job(2, everything_by(Path::words), kMiB));
}

TEST_CASE("pair: lines") {
  check_all_good(run_grid_job(2, everything_by(Path::lines), 16 * kMiB));
}

TEST_CASE("pair: push") {
  check_all_good(run_grid_job(2, everything_by(Path::push), 64 * kMiB));
}

TEST_CASE("pair: engines") {
  check_all_good(run_grid_job(2, everything_by(Path::engines), 64 * kMiB));
}

TEST_CASE("pair: engines, nothing by the kernel") {
  check_all_good(run_grid_job(2, everything_by(Path::engines, 0), 64 * kMiB));
}

TEST_CASE("pair: engines alone") {
  std::vector<Row> rows = everything_by(Path::engines, 0);
  for (Row& row : rows) row.push_blocks = row.own_blocks = 0;
  check_all_good(run_grid_job(2, rows, 64 * kMiB));
}

TEST_CASE("several ranks share a GPU") {
  Job job;
  job.ranks = 4;
  job.body = [](ProcessTeam& team) {
    use_gpu(team.rank());
    nvidia::Backend backend;
    return run_calls(team, backend, {}, "share a GPU");
  };
  check_all_good(run_job(job));
}

TEST_CASE("a rank with host memory") {
  Job job;
  job.body = [](ProcessTeam& team) {
    use_gpu(team.rank());
    nvidia::Backend backend;
    Call call;
    call.place = team.rank() == 0 ? Place::device : Place::host;
    if (run_calls(team, backend, call, "rank 1 has host memory") != 0) return 1;
    call.in_place = true;
    call.operation = Operation::alltoall;
    call.bytes = 5 * kMiB;
    const Exchange exchange(call, team, backend);
    return report(exchange.run(9));
  };
  check_all_good(run_job(job));
}

TEST_CASE("memory of the virtual memory calls") {
  Job job;
  job.body = [](ProcessTeam& team) {
    use_gpu(team.rank());
    nvidia::Backend backend;
    Call call;
    call.place = Place::shareable;
    return run_calls(team, backend, call, "");
  };
  check_all_good(run_job(job));
}

TEST_CASE("pair: each rank sees its own GPU only") {
  Job job;
  job.set_up = [](int rank) { setenv("CUDA_VISIBLE_DEVICES", rank == 0 ? "0" : "1", 1); };
  job.body = [](ProcessTeam& team) {
    nvidia::Backend backend;
    if (run_calls(team, backend, {}, "") != 0) return 1;
    const Exchange exchange({Operation::alltoall, 64}, team, backend);
    if (team.rank() == 0) std::printf("hidden: %s\n", exchange.plan().explain().c_str());
    return 0;
  };
  check_all_good(run_job(job));
}

TEST_CASE("a block that was freed and allocated again is another one") {
  Job job;
  job.body = [](ProcessTeam& team) {
    use_gpu(team.rank());
    nvidia::Backend backend;
    for (std::uint64_t i = 1; i < 40; ++i) {
      const std::uint64_t bytes = 3 * kMiB + i % 3 * kMiB;
      const Exchange exchange({Operation::alltoall, bytes}, team, backend);
      if (report(exchange.run(i)) != 0) return 1;
      team.barrier();
    }
    return backend.mappings().size() > 200 ? report("mappings pile up") : 0;
  };
  check_all_good(run_job(job));
}

TEST_CASE("calls that do not fit together fail alike") {
  Job job;
  job.body = [](ProcessTeam& team) {
    use_gpu(team.rank());
    nvidia::Backend backend;
    try {
      const std::uint64_t bytes = team.rank() == 0 ? 64 : 128;
      const Exchange exchange({Operation::alltoall, bytes}, team, backend);
    } catch (const core::Failure& failure) {
      return failure.status().kind == core::ErrorKind::mismatch ? 0 : 1;
    }
    return 1;
  };
  check_all_good(run_job(job));
}

TEST_CASE("pair: a plan whose peer never starts is freed within its bound") {
  Job job;
  job.body = [](ProcessTeam& team) {
    use_gpu(team.rank());
    nvidia::Backend backend;
    const Exchange exchange({Operation::alltoall, 4096}, team, backend);
    exchange.fill(1);
    if (team.rank() == 0) exchange.plan().start();
    return 0;
  };
  check_all_good(run_job(job));
}

} // namespace ferry::test
