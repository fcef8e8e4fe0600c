// SPDX-License-Identifier: MIT
#pragma once

// A machine of modelled GPUs for one process, without MPI.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/amd/fake/kernel.hpp"
#include "tests/amd/fake/rocr.hpp"
#include "tests/support/temporary_folder.hpp"

namespace ferry::test {

class LocalRig {
 public:
  explicit LocalRig(
      const std::string& model = "MI300X", const RocrSettings& rocr = {},
      const std::vector<int>& denied_nodes = {}, std::chrono::microseconds copy_time = {}) {
    write_sysfs(gpu_model(model), folder_.path() + "/sys", denied_nodes);
    FakeSettings settings;
    settings.model = model;
    settings.folder = folder_.path();
    settings.copy_time = copy_time;
    kernel_ = std::make_unique<FakeKernel>(settings);
    rocr_ = std::make_unique<FakeRocr>(*kernel_, rocr);
  }
  LocalRig(const LocalRig&) = delete;
  LocalRig& operator=(const LocalRig&) = delete;
  ~LocalRig() {
    rocr_.reset();
    kernel_.reset();
  }
  [[nodiscard]] FakeKernel& kernel() { return *kernel_; }
  [[nodiscard]] FakeRocr& rocr() { return *rocr_; }
  void end_runtime() { rocr_.reset(); }

 private:
  TemporaryFolder folder_; // goes last
  std::unique_ptr<FakeKernel> kernel_;
  std::unique_ptr<FakeRocr> rocr_;
};

} // namespace ferry::test
