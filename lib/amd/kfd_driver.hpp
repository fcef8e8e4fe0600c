// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "lib/amd/kfd_abi.hpp"
#include "lib/amd/system.hpp"
#include "lib/amd/topology.hpp"

namespace ferry::amd {

class KfdNode;

// Throws Failure with what was asked of the driver and its answer.
[[noreturn]] void refuse(const std::string& what, int error, std::string remedy = {});

// Memory that the driver gave, at the same address for the host and one GPU.
class KfdMemory {
 public:
  KfdMemory(KfdNode& node, std::size_t bytes, std::uint32_t flags);
  KfdMemory(const KfdMemory&) = delete;
  KfdMemory& operator=(const KfdMemory&) = delete;
  ~KfdMemory();

  // Lets the host reach it. descriptor: render node or, for doorbells, the driver.
  void map_host(int descriptor, std::int64_t offset);
  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::int64_t map_offset() const { return map_offset_; }

 private:
  void reserve();
  void release() noexcept;

  KfdNode& node_;
  std::size_t bytes_;
  std::byte* base_ = nullptr;
  std::uint64_t handle_ = 0;
  std::int64_t map_offset_ = 0;
  bool allocated_ = false;
  bool mapped_ = false;
};

// The driver, opened once by this process.
class KfdDriver {
 public:
  // Throws Failure.
  explicit KfdDriver(System& system);
  KfdDriver(const KfdDriver&) = delete;
  KfdDriver& operator=(const KfdDriver&) = delete;
  ~KfdDriver();

  [[nodiscard]] System& system() { return system_; }
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] const kfd::Version& version() const { return version_; }
  // Can a queue be made on an engine of choice?
  [[nodiscard]] bool chooses_engines() const;
  [[nodiscard]] int call(unsigned long request, void* argument);
  // Opened at its first use. Throws Failure.
  [[nodiscard]] KfdNode& node(const Gpu& gpu);

 private:
  System& system_;
  int descriptor_ = -1;
  kfd::Version version_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<KfdNode>> nodes_;
};

// One GPU, with an address space that it shares with whoever else uses it in this process.
class KfdNode {
 public:
  KfdNode(KfdDriver& driver, const Gpu& gpu);
  KfdNode(const KfdNode&) = delete;
  KfdNode& operator=(const KfdNode&) = delete;
  ~KfdNode();

  [[nodiscard]] KfdDriver& driver() { return driver_; }
  [[nodiscard]] std::uint32_t gpu_id() const { return gpu_id_; }
  [[nodiscard]] int node() const { return node_; }
  // True when another library, the ROCm runtime, had acquired the address space before.
  [[nodiscard]] bool shared() const { return shared_; }
  [[nodiscard]] bool holds(const void* base, std::size_t bytes) const;

  // Zeroed memory of the host, uncached, for rings and words that engine and host share.
  [[nodiscard]] std::unique_ptr<KfdMemory> shared_memory(std::size_t bytes);
  // Where the doorbell at this offset lies, for the host and for kernels.
  [[nodiscard]] std::uint64_t* doorbell(std::uint64_t offset);

 private:
  void acquire(const Gpu& gpu);
  void read_aperture();

  KfdDriver& driver_;
  int node_;
  std::uint32_t gpu_id_;
  int own_descriptor_ = -1;
  int descriptor_ = -1; // that maps memory
  bool shared_ = false;
  std::uint64_t lowest_ = 0;
  std::uint64_t highest_ = 0;
  std::mutex mutex_;
  std::map<std::uint64_t, std::unique_ptr<KfdMemory>> doorbells_; // by page offset
};

} // namespace ferry::amd
