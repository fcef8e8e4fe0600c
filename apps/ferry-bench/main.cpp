// SPDX-License-Identifier: MIT
// ferry-bench: a collective of Ferry against the one of the MPI below, in one run.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>
#include <ferry/ferry.hpp>

#include "apps/ferry-bench/crew.hpp"
#include "apps/ferry-bench/device/run.hpp"
#include "apps/ferry-bench/options.hpp"
#include "apps/ferry-bench/plot.hpp"
#include "apps/ferry-bench/report.hpp"
#include "apps/ferry-bench/runner.hpp"

namespace {

using namespace ferry::bench;

constexpr int kWrongData = 1;
constexpr int kUsage = 2;

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdout) std::fclose(file);
  }
};
using Output = std::unique_ptr<std::FILE, CloseFile>;

// Where rank 0 writes the JSON. Opened before anything is measured: a name that cannot be written
// must not cost the whole run. Null for a failure, which errno tells.
Output open_json(const std::string& name) {
  return Output(name == "-" ? stdout : std::fopen(name.c_str(), "w"));
}

// All ranks throw when rank 0 could not open its file.
Output agree_on_json(const Options& options, const Crew& crew) {
  Output json;
  std::uint64_t failed = 0;
  if (crew.rank() == 0 && !options.json.empty()) {
    json = open_json(options.json);
    if (json == nullptr) failed = static_cast<std::uint64_t>(errno);
  }
  failed = crew.sum(failed);
  if (failed != 0) {
    throw UsageError(
        fmt::format("--json {}: {}", options.json, std::strerror(static_cast<int>(failed))));
  }
  return json;
}

std::vector<Result> measure_all(const Options& options, const Crew& crew, std::FILE* table_out) {
  const Table table(options, crew.size(), table_out);
  const Progress progress(options.sizes.size());
  const bool speaks = crew.rank() == 0;
  Runner runner(options, MPI_COMM_WORLD, crew);
  std::vector<Result> results;
  if (speaks) table.header();
  for (const std::uint64_t bytes : options.sizes) {
    if (speaks) progress.show(results.size(), bytes);
    results.push_back(runner.measure(bytes));
    if (speaks) progress.clear();
    if (speaks) table.row(results.back());
  }
  if (speaks) table.footer(results);
  return results;
}

void draw_file(const Options& options) {
  std::ifstream file(options.draw);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) {
    throw std::runtime_error(fmt::format("--draw {}: {}", options.draw, std::strerror(errno)));
  }
  draw_results(text.str(), options.plot);
}

int run(int argc, char** argv, const Crew& crew) {
  const std::optional<Options> options = parse_options(argc, argv, crew.size());
  if (!options) {
    if (crew.rank() == 0) std::fputs(help_text().c_str(), stdout);
    return 0;
  }
  if (!options->draw.empty()) {
    if (crew.rank() == 0) draw_file(*options);
    return 0;
  }
  if (!options->plot.empty() && crew.rank() == 0) require_gnuplot();
  const Output json = agree_on_json(*options, crew);
  const std::vector<Result> results =
      measure_all(*options, crew, options->json == "-" ? stderr : stdout);
  if (json != nullptr) {
    const std::string text = to_json(*options, crew.size(), results);
    const bool written = std::fputs(text.c_str(), json.get()) >= 0 && std::fflush(json.get()) == 0;
    if (!written) {
      throw std::runtime_error(fmt::format("--json {}: {}", options->json, std::strerror(errno)));
    }
  }
  if (!options->plot.empty() && crew.rank() == 0) {
    draw_results(to_json(*options, crew.size(), results), options->plot);
  }
  for (const auto& result : results) {
    if (result.errors.value_or(0) != 0) return kWrongData;
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  // Errors come back as codes, those of calls without a communicator by way of MPI_COMM_SELF.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int status = 0;
#ifdef FERRY_DEVICE_BENCH
  if (wants_device(argc, argv)) {
    status = run_device(argc, argv, MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
  }
#endif
  {
    const Crew crew(MPI_COMM_WORLD);
    try {
      status = run(argc, argv, crew);
    } catch (const UsageError& error) {
      if (crew.rank() == 0) {
        std::fprintf(stderr, "ferry-bench: %s; see ferry-bench --help\n", error.what());
      }
      status = kUsage;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "ferry-bench: rank %d: %s\n", crew.rank(), error.what());
      end_job(MPI_COMM_WORLD, 3);
    }
  }
  MPI_Finalize();
  return status;
}
