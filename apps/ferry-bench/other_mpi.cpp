// SPDX-License-Identifier: MIT
// The peer's half of ferry-bench as a program of its own, built against an MPI that Ferry is not
// built against: the same buffers, calls and rounds; no Ferry.
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <mpi.h>
#include <nlohmann/json.hpp>

#include "apps/ferry-bench/crew.hpp"
#include "apps/ferry-bench/options.hpp"
#include "apps/ferry-bench/stopwatch.hpp"

namespace {

using namespace ferry::bench;
using Json = nlohmann::ordered_json;

constexpr int kCheckedCalls = 4;

std::uint64_t count_wrong(const Contender& peer, Buffers& buffers, const Crew& crew) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 1; i <= kCheckedCalls; ++i) {
    buffers.prepare(i);
    peer.call();
    wrong += buffers.count_wrong(i);
  }
  return crew.sum(wrong);
}

Json measure(const Options& options, Buffers& buffers, const Crew& crew, std::uint64_t bytes) {
  buffers.resize(bytes);
  buffers.prepare(0);
  const Contender peer = make_peer(options, buffers, MPI_COMM_WORLD);
  std::optional<std::uint64_t> errors;
  if (options.check) errors = count_wrong(peer, buffers, crew);
  Stopwatch stopwatch(options, crew, bytes);
  const Contender* const contenders[] = {&peer};
  const Times times = stopwatch.run(contenders).front();
  return {
      {"collective", name_of(options.operation)},
      {"form", name_of(options.form)},
      {"memory", options.shared ? "shared" : "private"},
      {"ranks", crew.size()},
      {"bytes", bytes},
      {"rounds", stopwatch.rounds()},
      {"peer_us_min", times.minimum * 1e6},
      {"peer_us_median", times.median * 1e6},
      {"peer_errors", errors ? Json(*errors) : Json(nullptr)}};
}

int run(int argc, char** argv, const Crew& crew) {
  const std::optional<Options> options = parse_options(argc, argv, crew.size());
  if (!options) {
    if (crew.rank() == 0) std::fputs(help_text().c_str(), stdout);
    return 0;
  }
  if (options->json != "-" || !options->plot.empty() || options->limit) {
    throw UsageError("this program writes its results to standard output: --json -, no --limit");
  }
  Buffers buffers(*options, crew.rank(), crew.size());
  Json results = Json::array();
  for (const std::uint64_t bytes : options->sizes) {
    results.push_back(measure(*options, buffers, crew, bytes));
  }
  if (crew.rank() == 0) std::puts(results.dump(2).c_str());
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int status = 0;
  {
    const Crew crew(MPI_COMM_WORLD);
    try {
      status = run(argc, argv, crew);
    } catch (const UsageError& error) {
      if (crew.rank() == 0) std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
      status = 2;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: rank %d: %s\n", argv[0], crew.rank(), error.what());
      end_job(MPI_COMM_WORLD, 3);
    }
  }
  MPI_Finalize();
  return status;
}
