// SPDX-License-Identifier: MIT
#pragma once

// A machine of modelled GPUs, one rank on each, with the backend on it: ranks are processes of MPI.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <mpi.h>

#include "lib/amd/backend.hpp"
#include "lib/exec/device_backend.hpp"
#include "tests/amd/fake/kernel.hpp"
#include "tests/amd/fake/rocr.hpp"
#include "tests/support/temporary_folder.hpp"

namespace ferry::test {

// The seam of the library, over MPI.
class MpiTeam final : public core::DeviceTeam {
 public:
  explicit MpiTeam(MPI_Comm comm);
  ~MpiTeam() override;
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  const std::string& name() const override { return name_; }
  void allgather(const void* mine, std::size_t bytes, void* all) override;
  void share(std::size_t bytes) override;
  std::byte* block(int rank) const override { return blocks_[static_cast<std::size_t>(rank)]; }
  core::Status check_alive() const override { return {}; }

 private:
  void free_windows();
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int ranks_ = 1;
  std::string name_ = "a team of the test";
  std::vector<MPI_Win> windows_;
  std::vector<std::byte*> blocks_;
};

struct RigSettings {
  std::string model = "MI300X";
  FakeFaults faults;
  RocrSettings rocr;
  amd::BackendOptions options;
  bool one_gpu = false; // for all ranks
  bool kernels = false; // the program uses HIP, which launches kernels
  // Of engines that use their freedom; 0: that of the run. Many ranks on few cores have engines
  // that do one thing after the other, unless there is a seed.
  std::uint64_t seed = 0;
  bool in_order = false; // engines do one thing after the other, however few ranks there are
};

// A folder for all ranks, gone when the last of them has left.
class SharedFolder {
 public:
  SharedFolder();
  ~SharedFolder();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::unique_ptr<TemporaryFolder> folder_; // on rank 0
  std::string path_;
};

class Rig {
 public:
  explicit Rig(const RigSettings& settings);
  [[nodiscard]] FakeKernel& kernel() { return *kernel_; }
  [[nodiscard]] FakeRocr& rocr() { return *rocr_; }
  [[nodiscard]] amd::AmdBackend& backend() { return *backend_; }
  [[nodiscard]] core::DeviceTeam& team() { return team_; }
  [[nodiscard]] int rank() const { return team_.rank(); }
  [[nodiscard]] int ranks() const { return team_.ranks(); }
  [[nodiscard]] int node() const { return node_; }
  [[nodiscard]] MpiTeam fresh_team() const { return MpiTeam(MPI_COMM_WORLD); }

 private:
  SharedFolder folder_;
  MpiTeam team_{MPI_COMM_WORLD};
  int node_;
  std::unique_ptr<FakeKernel> kernel_;
  std::unique_ptr<FakeRocr> rocr_;
  std::unique_ptr<amd::AmdBackend> backend_;
};

// Memory of a modelled GPU, or of the host, that holds data between canaries.
class RigBuffer {
 public:
  enum class Where { device, mapped, host };
  RigBuffer(Rig& rig, std::size_t bytes, Where where = Where::device, int node = 0);
  RigBuffer(const RigBuffer&) = delete;
  RigBuffer& operator=(const RigBuffer&) = delete;
  ~RigBuffer();
  [[nodiscard]] std::byte* data() { return base_ + kMargin; }
  void write(const std::vector<unsigned char>& bytes);
  [[nodiscard]] std::vector<unsigned char> read(); // and checks the canaries

 private:
  static constexpr std::size_t kMargin = 40; // so that pointers are interior, and odd to a page
  Rig& rig_;
  std::size_t bytes_;
  Where where_;
  std::byte* base_ = nullptr;
  std::vector<unsigned char> host_;
};

[[nodiscard]] unsigned char pattern_byte(int iteration, int sender, int receiver, std::size_t at);

// Waits for a plan, a minute at most.
[[nodiscard]] core::Status finish(core::DevicePlan& plan);

// One persistent collective, `starts` times with new data, checked byte by byte on every rank.
// Returns how many bytes were wrong on this rank.
struct Trial {
  core::Operation operation = core::Operation::alltoall;
  std::size_t block = 0;
  bool in_place = false;
  int root = 0;
  int starts = 3;
  RigBuffer::Where where = RigBuffer::Where::device;
};
class TrialRun {
 public:
  TrialRun(Rig& rig, core::DeviceTeam& team, const Trial& trial);
  [[nodiscard]] core::DevicePlan& plan() { return *plan_; }
  void fill(int iteration);
  [[nodiscard]] std::size_t wrong(int iteration);

 private:
  Rig& rig_;
  Trial trial_;
  std::unique_ptr<RigBuffer> send_;
  std::unique_ptr<RigBuffer> recv_;
  std::unique_ptr<core::DevicePlan> plan_;
};
[[nodiscard]] std::size_t run_trial(Rig& rig, const Trial& trial, std::string* explained = nullptr);
// Every collective with blocks of these sizes, each right, with path_of(trial) in what its plan
// says.
void run_every_collective(
    Rig& rig, const std::vector<std::size_t>& blocks,
    const std::function<const char*(const Trial&)>& path_of);
[[nodiscard]] bool contains(const std::string& text, const std::string& part);

} // namespace ferry::test
