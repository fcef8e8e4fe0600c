// SPDX-License-Identifier: MIT
// ferry-tune: measures where this machine wants Ferry to change its ways, and writes a table.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <ferry/ferry.h>
#include <fmt/format.h>
#include <mpi.h>
#include <nlohmann/json.hpp>

#include "apps/ferry-tune/gpu_job.hpp"
#include "apps/ferry-tune/gpu_tuner.hpp"
#include "apps/ferry-tune/gpus.hpp"
#include "apps/ferry-tune/tuner.hpp"

namespace {

using namespace ferry::tune;

constexpr int kUsage = 2;
constexpr double kQuietLoad = 0.7;

constexpr const char* kHelp =
    "Usage: ferry-tune [-o FILE] [--memory device] [--quick] [--mpiexec PROGRAM]\n"
    "Measures the sizes at which Ferry changes its ways on this machine, in less than two "
    "minutes,\n"
    "and writes a table for FERRY_TABLE or /etc/ferry/table.json. Nothing else should run\n"
    "meanwhile. It starts MPI jobs itself; under mpiexec one process does, the others leave.\n"
    "\n"
    "  -o FILE            where to write; without it, standard output\n"
    "  --memory device    the entries of AMD GPUs, in jobs with one rank for each GPU; all others "
    "are\n"
    "                     those of the table in effect\n"
    "  --quick            a rough run of a few seconds, to try the program: no table to keep\n"
    "  --mpiexec PROGRAM  the mpiexec of MPICH (mpiexec.mpich or mpiexec.hydra)\n"
    "  --version          the version of Ferry\n"
    "  --help             this text\n"
    "\n"
    "An entry that comes out too differently from repetition to repetition keeps its built-in\n"
    "value and is marked so. Exit status: 0; 1 when no table was written; 2 for a bad command\n"
    "line.\n";

struct Options {
  std::string file;
  std::string mpiexec;
  bool quick = false;
  bool gpus = false;
};

struct Outcome {
  int measured = 0;
  int kept = 0;
};

void say(const std::string& text) {
  fmt::print(stderr, "ferry-tune: {}\n", text);
  std::fflush(stderr);
}

std::string describe(ferry_topic topic) {
  std::string text(65536, 0);
  std::size_t needed = 0;
  const int code = ferry_describe(topic, FERRY_FORMAT_JSON, text.data(), text.size(), &needed);
  if (code != MPI_SUCCESS) throw std::runtime_error(ferry_error_text());
  if (needed > text.size()) throw std::runtime_error("Ferry has too much to say of this machine");
  text.resize(needed - 1);
  return text;
}

// "MPICH 4.0.2" of "MPICH Version:\t4.0.2\n..."
std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string line(text, static_cast<std::size_t>(length));
  line.resize(std::min(line.find('\n'), line.size()));
  if (const auto at = line.find(" Version:"); at != line.npos) line.erase(at, 9);
  for (char& c : line) {
    if (c == '\t') c = ' ';
  }
  return line;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

// The other processes of an mpiexec are not needed: jobs have processes of their own.
bool is_extra_process() {
  for (const char* variable : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"}) {
    const char* rank = std::getenv(variable);
    if (rank != nullptr && std::string_view(rank) != "0") return true;
  }
  return false;
}

std::string part_of(const std::string& path) {
  return path + ".part";
}

// Before anything is measured: a name that cannot be written must not cost the whole run.
void require_writable(const std::string& path) {
  if (path.empty()) return;
  std::ofstream file(part_of(path), std::ios::app);
  if (!file) throw std::runtime_error(fmt::format("{}: {}", path, std::strerror(errno)));
}

// Never half a file where a job may read one.
void write_file(const std::string& path, const std::string& text, const BenchJobs& jobs) {
  const std::string part = part_of(path);
  std::ofstream file(part);
  file << text << std::flush;
  if (!file) throw std::runtime_error(fmt::format("{}: {}", part, std::strerror(errno)));
  file.close();
  static_cast<void>(jobs.show_table(part)); // Ferry takes it
  if (std::rename(part.c_str(), path.c_str()) != 0) {
    throw std::runtime_error(fmt::format("{}: {}", path, std::strerror(errno)));
  }
}

Outcome tune_host(const Options& options, const BenchJobs& jobs, TableText& table) {
  const auto facts = nlohmann::json::parse(describe(FERRY_TOPIC_MACHINE));
  Machine machine;
  machine.cores = facts.at("cores_allowed").get<int>();
  machine.attach = facts.at("cross_memory_attach").at("ok").get<bool>();
  const std::string cpu = facts.at("cpu_model").get<std::string>();
  say(fmt::format(
      "{}, {} cores; about {}", cpu, machine.cores,
      options.quick ? "half a minute" : "a minute and a half"));
  if (machine.cores < 2) {
    throw std::runtime_error("one core: two ranks cannot run side by side, nothing is measured");
  }
  double load = 0;
  if (getloadavg(&load, 1) == 1 && load > kQuietLoad) {
    say(fmt::format("other programs run here (load {:.1f}): expect noise", load));
  }
  table.set_machine(cpu, static_cast<std::uint64_t>(machine.cores));
  Tuner tuner(jobs, table, machine, options.quick, say);
  tuner.run();
  return {tuner.measured(), tuner.kept()};
}

// A way that does not work would be measured as another one.
GpuTuner::Times times_of(const std::string& rows, GpuTuner::Way way) {
  const bool kernels = way == GpuTuner::Way::kernels;
  GpuTuner::Times times;
  for (const auto& row : nlohmann::json::parse(rows)) {
    const std::string why = row.at("why").get<std::string>();
    if (!why.starts_with(kernels ? "device: kernels: " : "device: sdma: ")) {
      throw std::runtime_error(fmt::format(
          "{} do not carry {} here, so there is no size to find: {}",
          kernels ? "kernels" : "copy engines", row.at("operation").get<std::string>(), why));
    }
    times[row.at("operation").get<std::string>()].push_back(row.at("us").get<double>());
  }
  return times;
}

Outcome tune_gpus(const Options& options, const BenchJobs& jobs, TableText& table) {
  const Gpus gpus;
  say(gpus.describe());
  if (gpus.count() < 2) throw std::runtime_error("one GPU: it has no peers, nothing is measured");
  const auto measure = [&](const TableText& trial, const GpuTuner::Sizes& sizes,
                           GpuTuner::Way way) {
    BenchJobs::Request request;
    request.ranks = gpus.count();
    request.table = trial.write();
    request.arguments = {options.quick ? "3" : "15", fmt::format("{}", fmt::join(sizes, ","))};
    request.variables = {{"FERRY", "on"}, {"FERRY_AMD_PATH", "auto"}};
    return times_of(jobs.run_on_gpus(request), way);
  };
  table.set_gpu(gpus.describe());
  GpuTuner tuner(table, options.quick, measure, say);
  tuner.run();
  return {tuner.measured(), tuner.kept()};
}

void tune(const Options& options) {
  const BenchJobs jobs(options.mpiexec);
  require_writable(options.file);
  TableText table(describe(FERRY_TOPIC_TABLE));
  const Outcome outcome =
      options.gpus ? tune_gpus(options, jobs, table) : tune_host(options, jobs, table);
  if (outcome.measured == 0) {
    throw std::runtime_error(
        "nothing could be measured, no table is written; try again when "
        "nothing else runs");
  }
  table.set_date(today());
  table.set_versions(
      fmt::format("{}.{}.{}", FERRY_VERSION_MAJOR, FERRY_VERSION_MINOR, FERRY_VERSION_PATCH),
      mpi_version());
  if (outcome.kept > 0) {
    say(fmt::format(
        "{} entries stay as they were; try again when nothing else runs", outcome.kept));
  }
  if (options.file.empty()) {
    std::fputs(table.write().c_str(), stdout);
    if (std::fflush(stdout) != 0) throw std::runtime_error("standard output cannot be written");
    return;
  }
  write_file(options.file, table.write(), jobs);
  say(fmt::format(
      "{} is written; set FERRY_TABLE to its name, or put it at /etc/ferry/table.json",
      options.file));
}

int misuse(const std::string& text) {
  say(text + "; see ferry-tune --help");
  return kUsage;
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == kGpuJob) return run_gpu_job(argc, argv);
  Options options;
  std::string memory = "host";
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--help" || option == "-h") return std::fputs(kHelp, stdout) < 0;
    if (option == "--version") {
      return std::printf(
                 "ferry %d.%d.%d\n", FERRY_VERSION_MAJOR, FERRY_VERSION_MINOR,
                 FERRY_VERSION_PATCH) < 0;
    }
    if (option == "--quick") {
      options.quick = true;
      continue;
    }
    std::string* const value = option == "-o"          ? &options.file
                               : option == "--mpiexec" ? &options.mpiexec
                               : option == "--memory"  ? &memory
                                                       : nullptr;
    if (value == nullptr) return misuse(fmt::format("unknown option '{}'", option));
    if (i + 1 == argc || *argv[i + 1] == 0) return misuse(fmt::format("{} needs a value", option));
    *value = argv[++i];
  }
  options.gpus = memory == "device";
  if (!options.gpus && memory != "host") return misuse("--memory: host or device");
  if (is_extra_process()) return 0;
  // Measured is what differs from the built-in table, whatever is set here. What GPUs do goes into
  // the table in effect.
  if (!options.gpus) setenv("FERRY_TABLE", "builtin", 1);
  try {
    tune(options);
  } catch (const std::exception& error) {
    if (!options.file.empty()) std::remove(part_of(options.file).c_str());
    say(error.what());
    return 1;
  }
  return 0;
}
