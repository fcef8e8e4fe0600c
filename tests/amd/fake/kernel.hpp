// SPDX-License-Identifier: MIT
#pragma once

// A modelled kernel driver behind the seam of the library: memory objects are anonymous files that
// processes can share, engines are a thread that reads the rings by way of the doorbells. It
// refuses what the real one refuses, and its engines touch nothing that is not mapped to their GPU.
// They carry packets out one after the other, or as late and in such order as hardware may: then
// each ring has a copy that the model engine consumes.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/amd/kfd_abi.hpp"
#include "lib/amd/system.hpp"
#include "lib/engine/decoder.hpp"
#include "lib/engine/model_engine.hpp"
#include "lib/engine/window.hpp"
#include "tests/amd/fake/model.hpp"

namespace ferry::test {

using NodeEngine = std::pair<int, std::uint32_t>;

struct FakeFaults {
  std::uint32_t minor = 17; // of the interface
  int open_error = 0; // of /dev/kfd: errno
  bool no_shared_descriptor = false; // as without libdrm
  std::map<unsigned long, int> errors = {}; // errno by number of the ioctl
  std::set<NodeEngine> full = {}; // engines with no queue left
  std::set<NodeEngine> hanging = {}; // take packets and do nothing
  std::set<NodeEngine> hanging_above = {}; // hang at the first copy of more than 16 KiB
  std::set<NodeEngine> cutting = {}; // leave out the last byte of copies of more than 16 KiB
};

struct FakeSettings {
  std::string model = "MI300X";
  std::string folder; // of the machine, alike for all its processes
  std::uint64_t seed = 1;
  bool free_engines = false; // use every freedom that hardware has
  std::chrono::microseconds copy_time{0}; // that a copy takes at least
  FakeFaults faults;
};

// Queues in use on each engine, over all processes of the machine.
struct MachineState {
  std::atomic<std::uint32_t> queues[256][32];
};

inline constexpr std::int64_t kDoorbellOffset = std::int64_t{1} << 40; // per GPU, on the driver

// A file without a name, or -1.
[[nodiscard]] int anonymous_file(std::size_t bytes);

class FakeKernel final : public amd::System {
 public:
  explicit FakeKernel(FakeSettings settings);
  ~FakeKernel() override;

  int open(const char* path, int flags) override;
  int close(int descriptor) override;
  int ioctl(int descriptor, unsigned long request, void* argument) override;
  std::intptr_t mmap(
      void* address, std::size_t bytes, int protection, int flags, int descriptor,
      std::int64_t offset) override;
  int munmap(void* address, std::size_t bytes) override;
  int descriptor_in_use(int descriptor) override;
  std::string sysfs() const override { return settings_.folder + "/sys"; }

  // From now on. The runtime of the process has opened what it needs before.
  void set_faults(const FakeFaults& faults);
  [[nodiscard]] const GpuModel& model() const { return model_; }
  [[nodiscard]] MachineState& machine() { return *machine_; }

  // For the modelled runtime of the same process, which has means of its own.
  [[nodiscard]] std::byte* import_memory(int file, std::size_t bytes, int node, void* at = nullptr);
  [[nodiscard]] int file_of(const void* base); // of the object there, or -1
  void allow(const void* base, int node);
  void forget(const void* base); // imported memory
  // Called by engines that stop, with what they cannot reach, or 0.
  using FaultHandler = std::function<void(int node, std::uint64_t address)>;
  void on_fault(FaultHandler handler);
  void lose(const void* base, int node); // the engines of this GPU do not reach it any more

  // For tests.
  [[nodiscard]] std::size_t objects();
  [[nodiscard]] std::size_t queues();
  [[nodiscard]] std::size_t files();
  [[nodiscard]] std::vector<std::string> faults(); // of engines
  void pause_engines(bool pause) { paused_ = pause; }
  [[nodiscard]] const core::ModelCounts& freedom() const { return engine_.counts(); }

 private:
  enum class FileKind { driver, render };
  struct File {
    FileKind kind;
    int node;
  };
  struct Object {
    int node = 0;
    std::uint64_t address = 0;
    std::size_t bytes = 0;
    std::uint32_t flags = 0;
    int file = -1;
    std::set<int> mapped; // nodes
    [[nodiscard]] bool doorbell() const { return (flags & amd::kfd::kMemoryDoorbell) != 0; }
  };
  struct Space {
    int descriptor = -1; // by which it was acquired
    std::size_t doorbells = 0; // handed out
    int doorbell_file = -1;
    std::uint64_t* doorbell_page = nullptr; // of the engines
    core::WindowSet windows;
  };
  struct Consumer {
    int node = 0;
    std::uint32_t engine = 0;
    std::uint64_t ring = 0;
    std::uint64_t bytes = 0;
    const std::uint64_t* wptr = nullptr;
    std::uint64_t* rptr = nullptr;
    const std::uint64_t* doorbell = nullptr;
    std::uint64_t position = 0;
    core::Decoder decoder;
    std::unique_ptr<core::Queue> copy; // of the ring, for the model engine; null: none
    bool stopped = false;
  };

  int dispatch(unsigned long request, std::byte* argument);
  int acquire_vm(const amd::kfd::AcquireVm& argument);
  int apertures(amd::kfd::Apertures& argument);
  int allocate(amd::kfd::AllocateMemory& argument);
  int free_memory(const amd::kfd::FreeMemory& argument);
  int map_memory(amd::kfd::MapMemory& argument, bool map);
  int create_queue(amd::kfd::CreateQueue& argument);
  int destroy_queue(const amd::kfd::DestroyQueue& argument);
  int pick_engine(const amd::kfd::CreateQueue& argument, int node, std::uint32_t& engine);
  void start_consumer(amd::kfd::CreateQueue& argument, int node, std::uint32_t engine);
  bool whole_mapping(std::uint64_t address, std::size_t bytes, int node);
  int node_of(std::uint32_t gpu_id) const;
  Object* object_at(std::uint64_t address);
  void open_doorbells(Space& space);
  void refresh_windows(int node);
  void release_slot(const Consumer& consumer);
  void run_engines(const std::stop_token& stop);
  bool turn(Consumer& consumer);
  bool turn_freely(Consumer& consumer, std::uint64_t doorbell);
  bool turn_in_order(Consumer& consumer, std::uint64_t doorbell);
  [[nodiscard]] bool plain(const Consumer& consumer) const;
  core::StepState step(
      Consumer& consumer, const std::uint32_t* dw, std::uint64_t published,
      std::uint64_t contiguous, std::uint64_t* used);
  void stop(Consumer& consumer, const std::string& why);
  [[nodiscard]] std::uint64_t unreachable(const Consumer& consumer);

  FakeSettings settings_;
  const GpuModel& model_;
  MachineState* machine_ = nullptr;
  std::mutex mutex_;
  std::map<int, File> files_;
  std::map<std::uint64_t, Object> objects_; // by handle
  std::map<int, Space> spaces_; // by node
  std::map<std::uint32_t, std::unique_ptr<Consumer>> queues_;
  std::uint64_t next_handle_ = 1;
  std::uint32_t next_queue_ = 1;
  std::uint64_t random_;
  std::vector<std::string> faults_;
  FaultHandler fault_handler_;
  core::ModelEngine engine_;
  std::atomic<bool> paused_{false};
  std::jthread engines_; // last
};

} // namespace ferry::test
