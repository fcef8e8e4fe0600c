// SPDX-License-Identifier: MIT
// A module for GPUs whose device memory is host memory under addresses that no load may touch.
#pragma once

#include <sys/mman.h>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "lib/base/error.hpp"
#include "lib/exec/device_backend.hpp"

namespace ferry::test {

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
  std::atomic<bool> makes_plans_{false};
  std::atomic<int> copies_{0};
};

// Alltoall: every rank puts all its blocks into its shared memory and counts the start; peers take
// theirs. Starts are told apart by the counter, and a second buffer keeps a start of its own.
class FakePlan final : public core::DevicePlan {
 public:
  FakePlan(FakeGpu& gpu, const core::CollectiveDesc& desc, core::DeviceTeam& team)
      : gpu_(gpu), desc_(desc), team_(team), half_(desc.block_bytes() * ranks()) {
    team.share(kHead + 2 * half_);
  }
  void start() override {
    const std::uint64_t next = epoch_ + 1;
    gpu_.copy(area(team_.rank(), next), desc_.send, half_);
    epoch_ = next;
    counter(team_.rank()).store(next, std::memory_order_release);
  }
  void start_on_stream(void*) override { start(); }
  [[nodiscard]] device::StartHandle arm(int starts) override {
    device::StartHandle handle;
    handle.release = &released_;
    handle.done = &epoch_;
    handle.first = epoch_ + 1;
    handle.starts = static_cast<std::uint64_t>(starts);
    return handle;
  }
  [[nodiscard]] core::Poll progress() override {
    for (int rank = 0; rank < team_.ranks(); ++rank) {
      if (counter(rank).load(std::memory_order_acquire) < epoch_) return core::Poll::pending;
    }
    const std::uint64_t block = desc_.block_bytes();
    for (int rank = 0; rank < team_.ranks(); ++rank) {
      const auto me = static_cast<std::uint64_t>(team_.rank());
      auto* to = static_cast<std::byte*>(desc_.recv) + static_cast<std::uint64_t>(rank) * block;
      gpu_.copy(to, area(rank, epoch_) + me * block, block);
    }
    return core::Poll::ready;
  }
  [[nodiscard]] const core::Status& status() const override { return status_; }
  [[nodiscard]] std::string missing() const override { return "a rank of the fake GPU"; }
  [[nodiscard]] std::string explain() const override { return "made by the fake GPU"; }

 private:
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
  std::uint64_t epoch_ = 0;
  std::uint64_t released_ = 0;
  core::Status status_;
};

// Handles that name the windows of all ranks; no engine is behind them.
class FakeTeam final : public core::KernelTeam {
 public:
  FakeTeam(const core::TeamMemory& memory, core::DeviceTeam& team)
      : windows_(static_cast<std::size_t>(team.ranks())), peers_(windows_.size()) {
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
  [[nodiscard]] core::Status error() const override { return {}; }

 private:
  std::vector<void*> windows_;
  std::vector<device::PeerHandle> peers_;
  device::TeamHandle handle_;
};

inline std::unique_ptr<core::KernelTeam> FakeGpu::make_team(
    const core::TeamMemory& memory, core::DeviceTeam& team) {
  return std::make_unique<FakeTeam>(memory, team);
}

inline std::unique_ptr<core::DevicePlan> FakeGpu::make_plan(
    const core::CollectiveDesc& desc, core::DeviceTeam& team) {
  const bool takes = makes_plans_ && desc.operation == core::Operation::alltoall &&
                     !desc.in_place && desc.irregular == nullptr;
  if (!takes) throw core::Failure(core::ErrorKind::other, "the fake GPU makes no such plan");
  return std::make_unique<FakePlan>(*this, desc, team);
}

} // namespace ferry::test
