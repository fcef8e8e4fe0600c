// SPDX-License-Identifier: MIT
// A module for GPUs whose device memory is host memory under addresses that no load may touch.
#pragma once

#include <sys/mman.h>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "device/platform.hpp"
#include "lib/base/error.hpp"
#include "lib/exec/device_backend.hpp"

namespace ferry::test {

class FakePlan;

class FakeGpu final : public core::DeviceBackend {
 public:
  // makes_plans: alltoall without gaps goes through memory that the team shares; other calls, and
  // all without it, are refused.
  void set_makes_plans(bool makes_plans) { makes_plans_ = makes_plans; }

  // A device address for host memory: to touch it is a fault.
  void* lend(const void* host, std::size_t bytes) {
    void* range = mmap(nullptr, bytes + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto offset = reinterpret_cast<std::uintptr_t>(host) % kPage;
    auto* device = static_cast<std::byte*>(range) + offset;
    const std::lock_guard lock(mutex_);
    lent_[device] = {static_cast<std::byte*>(const_cast<void*>(host)), bytes};
    return device;
  }

  [[nodiscard]] const char* name() const override { return "fake"; }
  [[nodiscard]] bool owns(const void* pointer) noexcept override {
    return host_of(pointer) != nullptr;
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    void* target = host_of(to);
    const void* source = host_of(from);
    std::memcpy(target != nullptr ? target : to, source != nullptr ? source : from, bytes);
    ++copies_;
  }
  [[nodiscard]] std::unique_ptr<core::DevicePlan> make_plan(
      const core::CollectiveDesc& desc, core::DeviceTeam& team) override;
  [[nodiscard]] std::unique_ptr<core::KernelTeam> make_team(
      const core::TeamMemory& memory, core::DeviceTeam& team) override;
  [[nodiscard]] std::string describe() override { return "a fake GPU"; }
  [[nodiscard]] int copies() const { return copies_; }

  // What teams of kernels have as the error of their packets from now on.
  void set_team_error(const core::Status& error) { team_error_ = error; }
  [[nodiscard]] const core::Status& team_error() const { return team_error_; }

  // Every plan goes as far as it can: what copy engines do while a kernel waits.
  void look();
  void add(FakePlan* plan) {
    const std::lock_guard lock(plans_mutex_);
    plans_.push_back(plan);
  }
  void remove(FakePlan* plan) {
    const std::lock_guard lock(plans_mutex_);
    std::erase(plans_, plan);
  }

 private:
  struct Lent {
    std::byte* host = nullptr;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t kPage = 4096;

  void* host_of(const void* pointer) noexcept {
    const std::lock_guard lock(mutex_);
    auto* at = static_cast<std::byte*>(const_cast<void*>(pointer));
    auto found = lent_.upper_bound(at);
    if (found == lent_.begin()) return nullptr;
    --found;
    const std::ptrdiff_t offset = at - found->first;
    const bool inside = offset < static_cast<std::ptrdiff_t>(found->second.bytes);
    return inside ? found->second.host + offset : nullptr;
  }

  std::mutex mutex_;
  std::map<std::byte*, Lent> lent_;
  std::mutex plans_mutex_;
  std::vector<FakePlan*> plans_;
  core::Status team_error_;
  std::atomic<bool> makes_plans_{false};
  std::atomic<int> copies_{0};
};

// Alltoall: every rank puts all its blocks into its shared memory and counts the start; peers take
// theirs. Starts are told apart by the counter, and a second buffer keeps a start of its own. A
// start is made by raising a word, by start() or by a kernel; whoever looks carries it out.
class FakePlan final : public core::DevicePlan {
 public:
  FakePlan(FakeGpu& gpu, const core::CollectiveDesc& desc, core::DeviceTeam& team)
      : gpu_(gpu), desc_(desc), team_(team), half_(desc.block_bytes() * ranks()) {
    team.share(kHead + 2 * half_);
    gpu_.add(this);
  }
  ~FakePlan() override { gpu_.remove(this); }
  void start() override {
    device::store_release(&released_, device::load_acquire(&released_) + 1);
    gpu_.look();
  }
  void start_on_stream(void*) override { start(); }
  [[nodiscard]] device::StartHandle arm(int starts) override {
    device::StartHandle handle;
    handle.release = &released_;
    handle.done = &done_;
    handle.first = std::max(armed_, device::load_acquire(&released_)) + 1;
    handle.starts = static_cast<std::uint64_t>(starts);
    armed_ = handle.first + handle.starts - 1;
    return handle;
  }
  [[nodiscard]] core::Poll progress() override {
    gpu_.look();
    const bool all = device::load_acquire(&done_) >= device::load_acquire(&released_);
    return all ? core::Poll::ready : core::Poll::pending;
  }
  [[nodiscard]] const core::Status& status() const override { return status_; }
  [[nodiscard]] std::string missing() const override { return "a rank of the fake GPU"; }
  [[nodiscard]] std::string explain() const override { return "made by the fake GPU"; }

  // Under the lock of the GPU. One start at a time: a peer may then still take what the one before
  // left.
  void advance() {
    if (begun_ == done_ && begun_ < device::load_acquire(&released_)) {
      gpu_.copy(area(team_.rank(), begun_ + 1), desc_.send, half_);
      counter(team_.rank()).store(++begun_, std::memory_order_release);
    }
    if (begun_ == done_ || !all_begun()) return;
    const std::uint64_t block = desc_.block_bytes();
    for (int rank = 0; rank < team_.ranks(); ++rank) {
      const auto me = static_cast<std::uint64_t>(team_.rank());
      auto* to = static_cast<std::byte*>(desc_.recv) + static_cast<std::uint64_t>(rank) * block;
      gpu_.copy(to, area(rank, begun_) + me * block, block);
    }
    device::store_release(&done_, begun_);
  }

 private:
  [[nodiscard]] bool all_begun() {
    for (int rank = 0; rank < team_.ranks(); ++rank) {
      if (counter(rank).load(std::memory_order_acquire) < begun_) return false;
    }
    return true;
  }
  static constexpr std::size_t kHead = 64;
  [[nodiscard]] std::uint64_t ranks() const { return static_cast<std::uint64_t>(team_.ranks()); }
  std::atomic<std::uint64_t>& counter(int rank) {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(team_.block(rank));
  }
  std::byte* area(int rank, std::uint64_t epoch) {
    return team_.block(rank) + kHead + epoch % 2 * half_;
  }

  FakeGpu& gpu_;
  core::CollectiveDesc desc_;
  core::DeviceTeam& team_;
  std::uint64_t half_;
  std::uint64_t armed_ = 0;
  std::uint64_t begun_ = 0;
  std::uint64_t released_ = 0; // for kernels too, as done_
  std::uint64_t done_ = 0;
  core::Status status_;
};

inline void FakeGpu::look() {
  const std::lock_guard lock(plans_mutex_);
  for (FakePlan* plan : plans_) plan->advance();
}

// Handles that name the windows of all ranks; no engine is behind them, but it may have failed.
class FakeTeam final : public core::KernelTeam {
 public:
  FakeTeam(FakeGpu& gpu, const core::TeamMemory& memory, core::DeviceTeam& team)
      : gpu_(gpu), windows_(static_cast<std::size_t>(team.ranks())), peers_(windows_.size()) {
    team.allgather(&memory.window, sizeof memory.window, windows_.data());
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      peers_[i].window = static_cast<char*>(windows_[i]);
    }
    handle_.rank = static_cast<std::uint32_t>(team.rank());
    handle_.ranks = static_cast<std::uint32_t>(team.ranks());
    handle_.peers = peers_.data();
    handle_.window_bytes = memory.window_bytes;
  }
  [[nodiscard]] const device::TeamHandle& handle() const override { return handle_; }
  [[nodiscard]] core::Status error() const override { return gpu_.team_error(); }

 private:
  FakeGpu& gpu_;
  std::vector<void*> windows_;
  std::vector<device::PeerHandle> peers_;
  device::TeamHandle handle_;
};

inline std::unique_ptr<core::KernelTeam> FakeGpu::make_team(
    const core::TeamMemory& memory, core::DeviceTeam& team) {
  return std::make_unique<FakeTeam>(*this, memory, team);
}

inline std::unique_ptr<core::DevicePlan> FakeGpu::make_plan(
    const core::CollectiveDesc& desc, core::DeviceTeam& team) {
  const bool takes = makes_plans_ && desc.operation == core::Operation::alltoall &&
                     !desc.in_place && desc.irregular == nullptr;
  if (!takes) throw core::Failure(core::ErrorKind::other, "the fake GPU makes no such plan");
  return std::make_unique<FakePlan>(*this, desc, team);
}

} // namespace ferry::test
