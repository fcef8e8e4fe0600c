// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lib/exec/device_backend.hpp"

namespace ferry::test {

// Ranks that are processes of this machine, forked off a parent that never touches a GPU. They talk
// through one shared mapping, so that no MPI is needed where the GPUs are.
class ProcessTeam final : public core::DeviceTeam {
 public:
  struct Board; // what the processes share

  ProcessTeam(Board* board, int rank) : board_(board), rank_(rank) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override;
  [[nodiscard]] const std::string& name() const override { return name_; }
  void allgather(const void* mine, std::size_t bytes, void* all) override;
  void share(std::size_t bytes) override;
  [[nodiscard]] std::byte* block(int rank) const override;
  [[nodiscard]] core::Status check_alive() const override;
  void barrier();

 private:
  Board* board_;
  int rank_;
  std::size_t used_ = 0; // of each block's room
  std::size_t shared_ = 0;
  std::string name_ = "test";
};

// Runs body on `ranks` processes and gives each what it returned: 0 is good. set_up runs first in
// each, before anything is loaded (environment). Ends all after `seconds`: then their result is -1.
// threads: the ranks are threads of one process, whose kernels share a GPU at the same time, where
// those of processes take turns; all get the worst of what they returned.
struct Job {
  int ranks = 2;
  bool threads = false;
  double seconds = 40;
  std::function<void(int rank)> set_up = [](int) {};
  std::function<int(ProcessTeam&)> body;
};
[[nodiscard]] std::vector<int> run_job(const Job& job);

// How many GPUs a process of this machine sees, asked by a process of its own.
[[nodiscard]] int visible_gpus();

} // namespace ferry::test
