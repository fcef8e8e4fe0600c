// SPDX-License-Identifier: MIT
#include "apps/ferry-tune/bench_job.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/ferry-tune/gpu_job.hpp"

extern char** environ;

namespace ferry::tune {
namespace {

constexpr int kLimitMilliseconds = 30'000; // for one job

// What mpiexec tells its processes about themselves, which a new job must not inherit.
bool belongs_to_job(std::string_view variable) {
  for (const std::string_view prefix : {"PMI_", "PMIX_", "HYDI_", "HYDRA_", "MPI_LOCAL"}) {
    if (variable.starts_with(prefix)) return true;
  }
  return false;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    if (!belongs_to_job(text) && variables.find(name) == variables.end()) all.emplace_back(text);
  }
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// A child process with its standard output and errors on a pipe, in a process group of its own.
class Child {
 public:
  Child(std::vector<std::string> command, std::vector<std::string> environment) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    output_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int error = posix_spawn(
        &pid_, command.front().c_str(), &actions, &attributes, pointers(command).data(),
        pointers(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(ends[1]);
    if (error == 0) return;
    close(output_);
    throw std::runtime_error(fmt::format("{}: {}", command.front(), std::strerror(error)));
  }
  ~Child() {
    if (!done_) {
      kill(-pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Everything it writes, until it ends or the time is over. False: the latter.
  bool read_all(std::string& text) const {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMilliseconds);
    std::array<char, 65536> part;
    for (ssize_t bytes = 1; bytes > 0;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      pollfd wait = {output_, POLLIN, 0};
      if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) == 0) return false;
      bytes = read(output_, part.data(), part.size());
      if (bytes > 0) text.append(part.data(), static_cast<std::size_t>(bytes));
    }
    return true;
  }
  // Its exit status, -1 when a signal ended it.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    done_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = 0;
  int output_ = -1;
  bool done_ = false;
};

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "it said nothing";
  const auto begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
}

} // namespace

std::string on_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = folder + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

BenchJobs::BenchJobs(const std::string& mpiexec) {
  mpiexec_ = mpiexec.empty() ? on_path("mpiexec.mpich") : on_path(mpiexec);
  if (mpiexec_.empty() && mpiexec.empty()) mpiexec_ = on_path("mpiexec.hydra");
  if (mpiexec_.empty()) {
    throw std::runtime_error(fmt::format(
        "there is no {}; name the mpiexec of MPICH with --mpiexec",
        mpiexec.empty() ? "mpiexec.mpich or mpiexec.hydra" : mpiexec));
  }
  folder_ = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const char* program : {"/ferry-bench", "/ferry-info"}) {
    if (access((folder_ + program).c_str(), X_OK) != 0) {
      throw std::runtime_error(fmt::format("{}{} is not there", folder_, program));
    }
  }
  const std::string any(6, 'X'); // what mkstemp() asks for, and replaces
  table_ = (std::filesystem::temp_directory_path() / ("ferry-tune-" + any)).string();
  const int file = mkstemp(table_.data());
  if (file < 0) throw std::runtime_error(fmt::format("{}: {}", table_, std::strerror(errno)));
  close(file);
}

BenchJobs::~BenchJobs() {
  unlink(table_.c_str());
  unlink((table_ + ".times").c_str());
}

std::string BenchJobs::output_of(
    const std::vector<std::string>& command,
    const std::map<std::string, std::string>& variables) const {
  Child child(command, environment_with(variables));
  std::string text;
  if (!child.read_all(text)) {
    throw std::runtime_error(
        fmt::format("no end after {} s: {}", kLimitMilliseconds / 1000, fmt::join(command, " ")));
  }
  if (const int status = child.wait(); status != 0) {
    throw std::runtime_error(
        fmt::format("{} failed ({}): {}", command.front(), status, last_line(text)));
  }
  return text;
}

void BenchJobs::run_job(
    const Request& request, const std::string& program,
    const std::vector<std::string>& middle) const {
  std::ofstream(table_) << request.table;
  std::map<std::string, std::string> variables = request.variables;
  variables["FERRY_TABLE"] = table_;
  std::vector<std::string> command = {
      mpiexec_, "-n", std::to_string(request.ranks), folder_ + program};
  command.insert(command.end(), middle.begin(), middle.end());
  command.insert(command.end(), request.arguments.begin(), request.arguments.end());
  static_cast<void>(output_of(command, variables));
}

std::vector<double> BenchJobs::run(const Request& request) const {
  run_job(request, "/ferry-bench", {"--peer", "none", "--json", table_ + ".times"});
  std::ifstream results(table_ + ".times");
  try {
    std::vector<double> times;
    for (const auto& row : nlohmann::json::parse(results)) {
      times.push_back(row.at("ferry_us_min").get<double>());
    }
    return times;
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(fmt::format("ferry-bench: {}", error.what()));
  }
}

std::string BenchJobs::run_on_gpus(const Request& request) const {
  run_job(request, "/ferry-tune", {kGpuJob, table_ + ".times"});
  std::ifstream results(table_ + ".times");
  return {std::istreambuf_iterator<char>(results), {}};
}

std::string BenchJobs::show_table(const std::string& path) const {
  return output_of({folder_ + "/ferry-info", "--table"}, {{"FERRY_TABLE", path}});
}

} // namespace ferry::tune
