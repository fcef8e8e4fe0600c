// SPDX-License-Identifier: MIT
#pragma once

// A machine of modelled GPUs for one process, without MPI.

#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/amd/fake/kernel.hpp"
#include "tests/amd/fake/rocr.hpp"

namespace ferry::test {

class LocalRig {
 public:
  explicit LocalRig(
      const std::string& model = "MI300X", const RocrSettings& rocr = {},
      const std::vector<int>& denied_nodes = {}) {
    char name[] = "/tmp/ferry-amd-local-XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    folder_ = name;
    write_sysfs(gpu_model(model), folder_ + "/sys", denied_nodes);
    FakeSettings settings;
    settings.model = model;
    settings.folder = folder_;
    kernel_ = std::make_unique<FakeKernel>(settings);
    rocr_ = std::make_unique<FakeRocr>(*kernel_, rocr);
  }
  LocalRig(const LocalRig&) = delete;
  LocalRig& operator=(const LocalRig&) = delete;
  ~LocalRig() {
    rocr_.reset();
    kernel_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] FakeKernel& kernel() { return *kernel_; }
  [[nodiscard]] FakeRocr& rocr() { return *rocr_; }
  void end_runtime() { rocr_.reset(); }

 private:
  std::string folder_;
  std::unique_ptr<FakeKernel> kernel_;
  std::unique_ptr<FakeRocr> rocr_;
};

} // namespace ferry::test
