// SPDX-License-Identifier: MIT
// The parts of ferry-tune that start no jobs.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "apps/ferry-tune/bench_job.hpp"
#include "apps/ferry-tune/copies.hpp"
#include "apps/ferry-tune/crossover.hpp"
#include "apps/ferry-tune/gpu_tuner.hpp"
#include "apps/ferry-tune/stolen.hpp"
#include "apps/ferry-tune/table_text.hpp"

namespace {

using namespace ferry::tune;
using Times = std::vector<double>;

constexpr const char* kTable =
    R"({"format":1,"date":"d","machine":{"cpu":"c","cores":2,"gpu":""},"versions":{"ferry":"f","mpi":"m"},)"
    R"("checksum":"","entries":{"b":{"from":"built-in","spread":0,"unit":"bytes","value":7},)"
    R"("a":{"from":"built-in","spread":0,"unit":"calls","value":9}}})";

} // namespace

TEST_CASE("tune: the crossover is where the second way begins to win") {
  const Times first = {1, 2, 4, 8};
  CHECK(best_crossover(first, Times{3, 3, 3, 3}) == 2);
  CHECK(best_crossover(first, Times{9, 9, 9, 9}) == 4);
  CHECK(best_crossover(first, Times{0.5, 1, 2, 4}) == 0);
  CHECK(best_crossover(first, first) == 0);
  // One size that was disturbed does not move it.
  CHECK(best_crossover(Times{1, 2, 4, 8, 16}, Times{3, 1.9, 4.5, 5, 5}) == 3);
  CHECK(best_crossover({}, {}) == 0);
}

TEST_CASE("tune: the time of a crossover is that of both ways, each where it is taken") {
  CHECK(time_with(Times{1, 4}, Times{9, 16}, 1) == doctest::Approx(4));
  CHECK(time_with(Times{1, 4}, Times{9, 16}, 0) == doctest::Approx(12));
  CHECK(time_with(Times{1, 4}, Times{9, 16}, 2) == doctest::Approx(2));
  CHECK(best_choice(Times{3, 1, 2}) == 1);
}

TEST_CASE("tune: repetitions agree, or it was noise") {
  const auto of = [](const std::vector<Trial>& trials) { return agree(trials); };
  CHECK(of({{4096, 1}, {8192, 1}, {4096, 1.4}}) == Finding{4096, 100});
  CHECK(of({{4096, 1}}) == Finding{4096, 0});
  CHECK(of({{0, 1}, {0, 1}}) == Finding{0, 0});
  CHECK(of({{1024, 1}, {4096, 1}}) == Finding{4096, 75});
  CHECK(!of({{1024, 1}, {8192, 1}}).has_value());
  CHECK(!of({{0, 1}, {512, 1}}).has_value());
  CHECK(!of({{4096, 1}, {4096, 1.6}}).has_value());
  CHECK(!of({}).has_value());
}

TEST_CASE("tune: a table is written line by line, with the checksum of what it says") {
  TableText table(kTable);
  CHECK(table.value("b") == 7);
  table.set("b", {8, 2000});
  table.set_value("a", 10);
  table.set_machine("x \"y\"", 4);
  table.set_gpu("z");
  table.set_date("2026-12-01");
  table.set_versions("1", "2");
  CHECK(
      table.write() ==
      "{\n"
      "  \"format\": 1,\n"
      "  \"date\": \"2026-12-01\",\n"
      "  \"machine\": {\"cpu\":\"x \\\"y\\\"\",\"cores\":4,\"gpu\":\"z\"},\n"
      "  \"versions\": {\"ferry\":\"1\",\"mpi\":\"2\"},\n"
      "  \"checksum\": \"fnv1a64:686e0956d1d8dc2c\",\n"
      "  \"entries\": {\n"
      "    \"b\": {\"from\":\"measured\",\"spread\":1000,\"unit\":\"bytes\",\"value\":8},\n"
      "    \"a\": {\"from\":\"built-in\",\"spread\":0,\"unit\":\"calls\",\"value\":10}\n"
      "  }\n"
      "}\n");
  for (const char* bad : {"", "[]", "{}", "{"}) {
    CHECK_THROWS_AS(TableText{bad}, std::runtime_error);
  }
}

namespace {

std::string gpu_table() {
  std::string entries;
  for (const char* operation : {"alltoall", "allgather", "broadcast"}) {
    for (const char* what : {"words_to", "engines_from"}) {
      entries += std::string(entries.empty() ? "" : ",") + "\"amd_" + operation + "_" + what +
                 R"(":{"from":"built-in","spread":0,"unit":"bytes","value":1})";
    }
  }
  return R"({"format":1,"date":"d","machine":{"cpu":"c","cores":2,"gpu":""},)"
         R"("versions":{"ferry":"f","mpi":"m"},"checksum":"","entries":{)" +
         entries + "}}";
}

// Words take 1 us and 1 us a KiB, copies by kernels 4 us and 0.1 us, engines 20 us and 0.01 us; a
// broadcast by engines takes for ever.
GpuTuner::Times model_times(
    const TableText& table, const GpuTuner::Sizes& sizes, GpuTuner::Way way) {
  GpuTuner::Times times;
  for (const std::string operation : {"alltoall", "allgather", "broadcast"}) {
    const std::uint64_t engines_from = table.value("amd_" + operation + "_engines_from");
    const std::uint64_t words_to = table.value("amd_" + operation + "_words_to");
    for (const std::uint64_t size : sizes) {
      const double kib = static_cast<double>(size) / 1024;
      const bool engines = size >= engines_from;
      CHECK(engines == (way == GpuTuner::Way::engines));
      const double words = size <= words_to ? 1 + kib : 4 + 0.1 * kib;
      const double alone = operation == "broadcast" ? 1e9 : 20 + 0.01 * kib;
      times[operation].push_back(engines ? alone : words);
    }
  }
  return times;
}

} // namespace

TEST_CASE("tune: on GPUs each way is tried by its table, and the best sizes are found") {
  TableText table(gpu_table());
  std::vector<std::string> said;
  GpuTuner tuner(table, false, model_times, [&](const std::string& text) { said.push_back(text); });
  tuner.run();
  CHECK(tuner.measured() == 6);
  CHECK(tuner.kept() == 0);
  for (const char* operation : {"alltoall", "allgather", "broadcast"}) {
    CHECK(table.value(std::string("amd_") + operation + "_words_to") == 2048);
  }
  CHECK(table.value("amd_alltoall_engines_from") == 256 << 10);
  CHECK(table.value("amd_broadcast_engines_from") == std::uint64_t{1} << 40);
  CHECK(said.front() == "amd_alltoall_words_to: 2048, spread 0 %");
}

TEST_CASE("tune: on GPUs noise is not written") {
  TableText table(gpu_table());
  double factor = 1;
  const auto measure = [&](const TableText& trial, const GpuTuner::Sizes& sizes,
                           GpuTuner::Way way) {
    GpuTuner::Times times = model_times(trial, sizes, way);
    factor *= 1.3;
    for (double& us : times["allgather"]) us *= factor;
    return times;
  };
  GpuTuner tuner(table, false, measure, [](const std::string&) {});
  tuner.run();
  CHECK(tuner.measured() == 4);
  CHECK(tuner.kept() == 2);
  CHECK(table.value("amd_allgather_words_to") == 1);
}

TEST_CASE("tune: every way of copying has a time, with a reader and without") {
  const std::vector<std::size_t> sizes = {4096, 1 << 20};
  for (const CopyWay way : {CopyWay::plain, CopyWay::rep, CopyWay::stream}) {
    for (const bool read_after : {false, true}) {
      const Times times = time_copies(way, sizes, read_after, 2);
      REQUIRE(times.size() == 2);
      CHECK(times[0] > 0);
      CHECK(times[1] > 0);
    }
  }
}

TEST_CASE("tune: a core that others take is noticed") {
  std::atomic<bool> stop{false};
  std::vector<std::jthread> others;
  const unsigned cores = std::max(std::thread::hardware_concurrency(), 1u);
  for (unsigned i = 0; i < 2 * cores; ++i) {
    others.emplace_back([&stop] {
      while (!stop.load(std::memory_order_relaxed)) {
      }
    });
  }
  const double busy = stolen_share(0.3);
  stop.store(true);
  others.clear();
  CHECK(busy > 0.2);
  CHECK(busy <= 1);
  CHECK(stolen_share(0.05) >= 0);
}

TEST_CASE("tune: programs are looked for on the path") {
  CHECK(on_path("sh").ends_with("/sh"));
  CHECK(on_path("/bin/sh") == "/bin/sh");
  CHECK(on_path("/bin/no-such-program").empty());
  CHECK(on_path("no-such-program").empty());
  CHECK_THROWS_AS(BenchJobs{"no-such-program"}, std::runtime_error);
}
