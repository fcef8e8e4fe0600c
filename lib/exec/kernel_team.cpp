// SPDX-License-Identifier: MIT
// What kernels use of a communicator: teams of its ranks, and starts of its plans.
#include <fmt/format.h>
#include <utility>

#include "lib/exec/communicator.hpp"
#include "lib/exec/device_memory.hpp"
#include "lib/exec/device_team.hpp"

namespace ferry::core {
namespace {

// What a rank tells of its side. Sent as bytes.
struct Facts {
  std::uint64_t window_bytes = 0;
  std::uint8_t kind = 0; // DeviceKind
  bool loaded = false;
  bool source_fits = false; // it is of the same kind, or there is none
  char pad[5] = {};
};

Facts facts_of(const TeamMemory& memory, const DeviceBackend* backend, DeviceKind kind) {
  Facts facts;
  facts.window_bytes = memory.window_bytes;
  facts.kind = static_cast<std::uint8_t>(kind);
  facts.loaded = backend != nullptr;
  facts.source_fits = memory.source_bytes == 0 || device_kind(memory.source) == kind;
  return facts;
}

// Throws alike on all ranks.
void check(const std::vector<Facts>& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Facts& facts = all[rank];
    if (facts.kind == 0 || !facts.source_fits) {
      throw Failure(
          ErrorKind::buffer,
          fmt::format(
              "the {} of rank {} is no device memory", facts.kind == 0 ? "window" : "source", rank),
          "pass memory of the GPU of that rank");
    }
    if (!facts.loaded) {
      throw Failure(
          ErrorKind::other, fmt::format("rank {} cannot load the module for its GPU", rank),
          "ferry-info --selftest tells why");
    }
    if (facts.kind == all[0].kind && facts.window_bytes == all[0].window_bytes) continue;
    throw Failure(
        ErrorKind::mismatch,
        fmt::format(
            "the window of rank {} has {} bytes, or is of another kind, than the {} of rank 0",
            rank, facts.window_bytes, all[0].window_bytes),
        "pass windows of one size and one kind of GPU on all ranks");
  }
}

// The module's team, and the ranks that it needs until it goes.
class HeldTeam final : public KernelTeam {
 public:
  HeldTeam(std::unique_ptr<SharedDeviceTeam> ranks, std::unique_ptr<KernelTeam> made)
      : ranks_(std::move(ranks)), made_(std::move(made)) {}
  [[nodiscard]] const device::TeamHandle& handle() const override { return made_->handle(); }
  [[nodiscard]] Status error() const override { return made_->error(); }

 private:
  std::unique_ptr<SharedDeviceTeam> ranks_; // outlives made_
  std::unique_ptr<KernelTeam> made_;
};

} // namespace

device::StartHandle PersistentPlan::arm(int starts) {
  if (device_ == nullptr) {
    throw Failure(
        ErrorKind::request, "the handle is no plan of a GPU",
        "start it with ferry_start; ferry_explain tells why it runs on the host");
  }
  return device_->arm(starts);
}

std::unique_ptr<KernelTeam> Communicator::make_kernel_team(const TeamMemory& memory) {
  CollectiveDesc desc;
  desc.operation = Operation::barrier;
  const PersistentPlan waiting(team_, desc); // names the waits; it is never started
  const auto ranks = static_cast<std::size_t>(team_.ranks());
  if (ranks > 1) {
    finish_set_up(waiting);
    if (carried_by_mpi()) {
      throw Failure(
          ErrorKind::comm, "a team for kernels of ranks that do not share memory",
          "make it of the ranks of one machine (MPI_Comm_split_type)");
    }
  }
  const auto gather_bytes = [this, &waiting](const void* mine, std::size_t bytes, void* all) {
    gather(mine, bytes, all, waiting);
  };
  const DeviceKind kind = device_kind(memory.window);
  DeviceBackend* const backend = kind == DeviceKind::none ? nullptr : device_backend(kind, nullptr);
  const Facts mine = facts_of(memory, backend, kind);
  std::vector<Facts> all(ranks);
  gather_bytes(&mine, sizeof mine, all.data());
  check(all);
  // The gather is for the set-up, which ends here.
  auto team = std::make_unique<SharedDeviceTeam>(team_, gather_bytes);
  auto made = backend->make_team(memory, *team);
  return std::make_unique<HeldTeam>(std::move(team), std::move(made));
}

} // namespace ferry::core
