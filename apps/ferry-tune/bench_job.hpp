// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ferry::tune {

// Starts jobs of ferry-bench, and of this program on GPUs. Works from within mpiexec too: the jobs
// know nothing of it.
class BenchJobs {
 public:
  // ferry-bench lies beside this program. Throws std::runtime_error when it or mpiexec is missing.
  explicit BenchJobs(const std::string& mpiexec);
  ~BenchJobs();
  BenchJobs(const BenchJobs&) = delete;
  BenchJobs& operator=(const BenchJobs&) = delete;

  struct Request {
    int ranks = 2;
    std::vector<std::string> arguments; // of ferry-bench
    std::string table; // text of the table that it runs by
    std::map<std::string, std::string> variables;
  };
  // The best time of each size, in the order of the sizes. Throws std::runtime_error.
  [[nodiscard]] std::vector<double> run(const Request& request) const;
  // What run_gpu_job() writes, with iterations and sizes as arguments. Throws std::runtime_error.
  [[nodiscard]] std::string run_on_gpus(const Request& request) const;
  // What `ferry-info --table` says of a file; throws std::runtime_error with its complaint.
  [[nodiscard]] std::string show_table(const std::string& path) const;

 private:
  [[nodiscard]] std::string output_of(
      const std::vector<std::string>& command,
      const std::map<std::string, std::string>& variables) const;
  // A job of a program of ours, `middle` between it and the arguments, by the table of the request.
  void run_job(
      const Request& request, const std::string& program,
      const std::vector<std::string>& middle) const;

  std::string mpiexec_;
  std::string folder_; // of the programs
  std::string table_; // a file of ours
};

// The first program of that name on PATH; empty when there is none.
[[nodiscard]] std::string on_path(const std::string& name);

} // namespace ferry::tune
