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
#include "apps/ferry-tune/stolen.hpp"
#include "apps/ferry-tune/table_text.hpp"

namespace {

using namespace ferry::tune;
using Times = std::vector<double>;

constexpr const char* kTable =
    R"({"format":1,"date":"d","machine":{"cpu":"c","cores":2},"versions":{"ferry":"f","mpi":"m"},)"
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
  table.set_date("2026-12-01");
  table.set_versions("1", "2");
  CHECK(
      table.write() ==
      "{\n"
      "  \"format\": 1,\n"
      "  \"date\": \"2026-12-01\",\n"
      "  \"machine\": {\"cpu\":\"x \\\"y\\\"\",\"cores\":4},\n"
      "  \"versions\": {\"ferry\":\"1\",\"mpi\":\"2\"},\n"
      "  \"checksum\": \"fnv1a64:35261a88366076b2\",\n"
      "  \"entries\": {\n"
      "    \"b\": {\"from\":\"measured\",\"spread\":1000,\"unit\":\"bytes\",\"value\":8},\n"
      "    \"a\": {\"from\":\"built-in\",\"spread\":0,\"unit\":\"calls\",\"value\":10}\n"
      "  }\n"
      "}\n");
  for (const char* bad : {"", "[]", "{}", "{"}) {
    CHECK_THROWS_AS(TableText{bad}, std::runtime_error);
  }
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
