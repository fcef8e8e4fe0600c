// SPDX-License-Identifier: MIT
#pragma once

// A modelled ROCm runtime on the modelled driver, behind the tables of functions that the library
// looks up: agents, pools, allocations, handles for other processes, copies by engines, and the two
// functions of HIP. One in a process.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <set>
#include <thread>
#include <vector>

#include "lib/amd/hsa_api.hpp"
#include "tests/amd/fake/kernel.hpp"

namespace ferry::test {

struct RocrSettings {
  std::set<int> hidden = {}; // nodes
  bool knows_engines = true; // an older release does not
  bool knows_preferred = true; // an older release does not
  std::uint32_t preferred = 0; // engines of every link; 0: what the driver recommends
  std::set<NodeEngine> failing = {}; // engines whose copies fail
  bool no_attach = false; // handles of other processes cannot be mapped
  bool knows_vmem = true; // an older release does not
};

class FakeRocr {
 public:
  FakeRocr(FakeKernel& kernel, RocrSettings settings);
  FakeRocr(const FakeRocr&) = delete;
  FakeRocr& operator=(const FakeRocr&) = delete;
  ~FakeRocr();

  [[nodiscard]] amd::HsaApi hsa() const;
  [[nodiscard]] static amd::HipApi hip();
  [[nodiscard]] RocrSettings& settings() { return settings_; }

  // What a program calls.
  [[nodiscard]] std::byte* hip_malloc(int node, std::size_t bytes);
  [[nodiscard]] std::byte* hip_map(int node, std::size_t bytes); // hipMemCreate and hipMemMap
  void hip_free(void* base);

  // From now on engines do not reach mappings of other processes that are longer than this.
  void lose_mappings(std::size_t longer_than);
  void report(int node, std::uint64_t address); // a fault
  [[nodiscard]] std::size_t unclaimed(); // faults for which the real one ends the process

  [[nodiscard]] std::set<std::uint32_t> masks_used(); // of engines that were named for copies
  [[nodiscard]] std::size_t allocations();
  [[nodiscard]] std::size_t attached(); // handles that are mapped now
  [[nodiscard]] std::size_t attachments(); // ever
  [[nodiscard]] static std::size_t host_functions(); // put on streams, ever
  [[nodiscard]] std::size_t mapped_ranges(); // of other processes, by descriptor

 private:
  friend struct RocrFunctions;
  friend struct HipFunctions;
  friend struct VmemFunctions;
  struct Record {
    std::byte* base = nullptr;
    std::size_t bytes = 0;
    int node = 0;
    std::uint64_t id = 0; // of hip_malloc
    std::uint64_t handle = 0; // of the driver
    bool imported = false;
    bool vmem = false;
    amd::hsa::IpcHandle ipc;
  };
  struct Copy {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
    std::uint64_t signal;
    bool fails;
  };

  [[nodiscard]] static FakeRocr& of_process();
  [[nodiscard]] static int node_of(amd::hsa::Agent agent);
  [[nodiscard]] static amd::hsa::Agent agent_of(int node);
  [[nodiscard]] static amd::VmemApi vmem();
  [[nodiscard]] std::byte* allocate(int node, std::size_t bytes, std::uint64_t id);
  int release(void* base);
  [[nodiscard]] std::optional<Record> record_of(const void* pointer);
  int create_handle(void* base, std::size_t bytes, amd::hsa::IpcHandle* handle);
  int attach(const amd::hsa::IpcHandle& handle, std::size_t bytes, int node, void** base);
  int detach(void* base);
  void push(const Copy& copy);
  void run_copies();

  FakeKernel& kernel_;
  RocrSettings settings_;
  int driver_ = -1;
  std::map<int, int> render_; // descriptors, by node
  std::mutex mutex_;
  std::map<std::uint64_t, Record> records_; // by base
  std::uint64_t next_id_ = 1;
  std::size_t attachments_ = 0;
  std::vector<std::pair<amd::hsa::EventHandler, void*>> listeners_;
  std::size_t unclaimed_ = 0;
  std::set<std::uint32_t> masks_used_;
  std::map<std::uint64_t, int> ranges_; // files, by the base of a range
  std::condition_variable work_;
  std::queue<Copy> copies_;
  bool ending_ = false;
  std::thread copier_; // last
};

// A stream of the modelled HIP, as the pointer that programs pass on.
class FakeStream {
 public:
  FakeStream();
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;
  ~FakeStream();
  void push(std::function<void()> work);
  void synchronize();
  [[nodiscard]] bool idle();
  [[nodiscard]] bool capturing();
  // Between these two, work is recorded and not run; replay() runs what was recorded.
  void begin_capture();
  void end_capture();
  void replay();

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::function<void()>> work_;
  std::vector<std::function<void()>> graph_;
  bool capturing_ = false;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

} // namespace ferry::test
