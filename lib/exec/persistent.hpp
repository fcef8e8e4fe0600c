// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/exec/device_backend.hpp"
#include "lib/exec/lane.hpp"
#include "lib/exec/node_team.hpp"

namespace ferry::core {

// A persistent collective: description, schedule, program and epoch, with memory of its own, so
// that plans of one communicator may be started in any order.
class PersistentPlan {
 public:
  PersistentPlan(Team& team, const CollectiveDesc& desc);
  ~PersistentPlan();
  PersistentPlan(const PersistentPlan&) = delete;
  PersistentPlan& operator=(const PersistentPlan&) = delete;

  // Set-up, in steps between which the caller exchanges offers among the ranks; alike on all ranks
  // they throw when the calls do not fit together.
  [[nodiscard]] Offer offer() const;
  void check(const std::vector<Offer>& offers) const; // one of each rank
  [[nodiscard]] std::vector<Offer> pair_offers() const; // of an exchange: one for each rank
  // Plans, and provides memory; `offers` are the pair offers of all ranks for an exchange.
  [[nodiscard]] Offer compile(std::vector<Offer> offers);
  void link(MPI_Comm comm, const std::vector<Offer>& placed); // resolves addresses
  // Of device memory: a plan of its module, or host memory in its place, for the reason given; that
  // does nothing on a rank without device memory.
  void compile_device(std::unique_ptr<DevicePlan> device, std::unique_ptr<DeviceTeam> team);
  void bounce(const std::string& reason);
  [[nodiscard]] bool bounced() const { return !bounce_reason_.empty(); }
  // Without sharing: one rank, or carried by the MPI below for the reason given.
  void compile_local();
  void compile_mpi(MPI_Comm comm, const std::string& reason);
  // Ranks on several nodes; mates: the ranks of this one.
  void compile_nodes(std::unique_ptr<NodeHandle> nodes, const std::vector<int>& mates);
  // A reduction: the plans of its stages, one after the other.
  void compile_stages(
      std::unique_ptr<ReductionScript> script, std::vector<std::unique_ptr<PersistentPlan>> stages);

  void start(MPI_Comm comm); // throws Failure: only of device memory
  [[nodiscard]] Status start_on_stream(void* stream);
  [[nodiscard]] device::StartHandle arm(int starts); // throws Failure
  Poll progress();
  [[nodiscard]] const Status& status() const;
  [[nodiscard]] std::string missing() const;
  // After an error: keep memory that peers may touch, stop all packets.
  void abandon(const Status& status);

  [[nodiscard]] const CollectiveDesc& desc() const { return desc_; }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  // In flight: started, and not yet seen complete by its communicator.
  [[nodiscard]] bool active() const { return active_; }
  void set_active(bool active) { active_ = active; }
  // It waits for the MPI below, so that no rank could wake this one.
  [[nodiscard]] bool on_network() const;
  [[nodiscard]] std::string explain() const;

 private:
  void check_pairs(const std::vector<Offer>& all) const;
  void plan_schedule();
  Poll progress_stages();
  Poll advance();
  Poll progress_nodes();
  void plan_layout();
  void link_slots();
  void link_rings();
  [[nodiscard]] bool uses_slots() const;
  [[nodiscard]] std::string explain_host() const;
  void give_back();

  Team& team_;
  CollectiveDesc desc_;
  PlanLimits limits_;
  std::string why_;
  std::vector<Offer> offers_; // what each rank offers to this one
  std::uint64_t widest_slot_ = 0; // of any pair of an exchange; alike on all ranks
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
  std::unique_ptr<NodeHandle> nodes_;
  std::vector<int> mates_;
  std::unique_ptr<ReductionScript> script_;
  std::vector<std::unique_ptr<PersistentPlan>> stages_;
  std::size_t stage_ = 0;
  MPI_Comm comm_ = MPI_COMM_NULL; // that stages are started on
  Status stage_status_;
  std::unique_ptr<DeviceTeam> device_team_; // outlives device_
  std::unique_ptr<DevicePlan> device_;
  std::unique_ptr<DeviceBounce> bounce_;
  std::string bounce_reason_;
  Status bounce_status_;
  std::uint64_t epoch_ = 0;
  bool slots_open_ = false;
  bool rings_open_ = false;
  Status broken_;
  bool active_ = false;
};

} // namespace ferry::core
