// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/exec/lane.hpp"

namespace ferry::core {

// A persistent collective: description, schedule, program and epoch, with memory of its own, so
// that plans of one communicator may be started in any order.
class PersistentPlan {
 public:
  PersistentPlan(Team& team, const CollectiveDesc& desc);
  ~PersistentPlan();
  PersistentPlan(const PersistentPlan&) = delete;
  PersistentPlan& operator=(const PersistentPlan&) = delete;

  // Set-up, in three steps between which the caller exchanges offers among the ranks. `mine` is
  // this rank's offer; alike on all ranks, compile() throws when the calls do not fit together.
  [[nodiscard]] Offer offer() const;
  [[nodiscard]] Offer compile(std::vector<Offer> offers); // plans, and provides memory
  void link(MPI_Comm comm, std::vector<Offer> offers); // resolves addresses
  // Without sharing: one rank, or carried by the MPI below for the reason given.
  void compile_local();
  void compile_mpi(MPI_Comm comm, const std::string& reason);

  void start(MPI_Comm comm);
  Poll progress();
  [[nodiscard]] const Status& status() const;
  [[nodiscard]] std::string missing() const;
  // After an error: keep memory that peers may touch, stop all packets.
  void abandon(const Status& status);

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  // In flight: started, and not yet seen complete by its communicator.
  [[nodiscard]] bool active() const { return active_; }
  void set_active(bool active) { active_ = active; }
  [[nodiscard]] std::string explain() const;

 private:
  [[nodiscard]] std::vector<std::byte*> blocks_of(const std::vector<Offer>& offers) const;
  void give_back();

  Team& team_;
  CollectiveDesc desc_;
  PlanLimits limits_;
  std::string why_;
  Schedule schedule_;
  BlockLayout layout_;
  std::byte* block_ = nullptr;
  std::vector<std::byte*> blocks_;
  SlotProgram slot_program_;
  std::unique_ptr<SlotChannel> channel_;
  SlotRun slot_run_;
  SignalCounts counts_;
  std::unique_ptr<RingPlan> rings_;
  MpiPath mpi_;
  CommHold hold_;
  std::uint64_t epoch_ = 0;
  Status broken_;
  bool active_ = false;
};

} // namespace ferry::core
