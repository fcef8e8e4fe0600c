// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "lib/topology/launcher.hpp"

namespace ferry::core {

// A GPU of this machine, whether or not a runtime for it is there.
struct GpuFacts {
  std::string vendor; // "NVIDIA", "AMD"
  std::string address; // on the PCI bus: 0000:c1:00.0
  std::string id; // as the vendor names the one device; empty when its driver does not tell
  std::string reason; // why this process cannot open it; empty when it can
};

// In the order of their addresses. Opens device files, which may wake a GPU; loads no runtime.
// `root` stands in front of /sys, /proc and /dev, for tests.
[[nodiscard]] std::vector<GpuFacts> find_gpus(const std::string& root = {});

// One line: which of them this process can use, by vendor and address, or "none". Variables that
// hide some of them from a runtime (CUDA_VISIBLE_DEVICES ...) are told beside.
[[nodiscard]] std::string gpu_line(const std::vector<GpuFacts>& gpus, const LauncherVariable& get);

} // namespace ferry::core
