// SPDX-License-Identifier: MIT
#pragma once

// Launches the kernels of lib/amd/kernels on the GPUs of this process.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "lib/amd/hip_modules.hpp"
#include "lib/amd/kernels/shape.hpp"
#include "lib/amd/topology.hpp"

namespace ferry::amd {

// A kernel on a GPU.
struct KernelFunction {
  int device = 0; // HIP's number of it in this process
  void* function = nullptr;
};

class KernelDevices {
 public:
  explicit KernelDevices(const HipModules& hip) : hip_(hip) {}
  KernelDevices(const KernelDevices&) = delete;
  KernelDevices& operator=(const KernelDevices&) = delete;

  // Empty when kernels can run on this GPU, otherwise why not.
  [[nodiscard]] std::string refuses(const Gpu& gpu) const;

  // All throw Failure. Modules are loaded once for each GPU and stay.
  [[nodiscard]] KernelFunction function(const Gpu& gpu, const char* name);
  [[nodiscard]] std::shared_ptr<void> make_stream(int device) const;
  [[nodiscard]] std::shared_ptr<void> host_memory(std::size_t bytes) const; // zeroed

  // The arguments are copied. An error of HIP, or 0.
  [[nodiscard]] int launch(
      const KernelFunction& kernel, const KernelShape& shape, void* arguments, void* stream) const;
  // As hipStreamQuery.
  [[nodiscard]] int query(void* stream) const { return hip_.stream_query(stream); }

  // What became of the trial of a kernel: empty when it was right; none when nobody has tried.
  [[nodiscard]] std::optional<std::string> verdict(const std::string& kernel);
  void remember(const std::string& kernel, const std::string& verdict);

 private:
  HipModules hip_;
  std::mutex mutex_;
  std::map<int, void*> modules_; // by device
  std::map<std::string, std::string> verdicts_;
};

} // namespace ferry::amd
