// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>
#include <atomic>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/base/bootstrap.hpp"
#include "lib/exec/active.hpp"
#include "lib/exec/device_calls.hpp"
#include "lib/exec/drive_lock.hpp"
#include "lib/exec/lane.hpp"
#include "lib/exec/node_team.hpp"
#include "lib/exec/persistent.hpp"
#include "lib/exec/set_up.hpp"

namespace ferry::core {

// All that Ferry keeps for one communicator of the user. Made at the first call on it, which starts
// the set-up; requests and the attribute of the MPI communicator share it. One thread at a time
// drives it, others pass by.
class Communicator final : public Active, public std::enable_shared_from_this<Communicator> {
 public:
  // threaded: several threads may call at once (MPI_THREAD_MULTIPLE).
  Communicator(
      std::unique_ptr<Bootstrap> bootstrap, MPI_Comm comm, std::string name, bool threaded = true);
  ~Communicator() override;

  // Queue a blocking or non-blocking operation; it stays alive until it is complete.
  void post(LaneOp& op);
  // Drive what is in flight; ready when op is complete.
  Poll look(LaneOp& op);
  // Wait for op. An error leaves it complete and the communicator unusable, except for a mismatch.
  [[nodiscard]] Status wait(LaneOp& op);
  // A blocking operation, to its end: the short way where nothing else is under way.
  void run(LaneOp& op);

  // Collective, may block: plan, exchange addresses, encode. Throws Failure.
  [[nodiscard]] std::unique_ptr<PersistentPlan> make_plan(const CollectiveDesc& desc);
  [[nodiscard]] Status start(PersistentPlan& plan);
  Poll look(PersistentPlan& plan);
  [[nodiscard]] Status wait(PersistentPlan& plan);
  // On a stream of a GPU's runtime; completion is a matter of that stream.
  [[nodiscard]] Status start_on_stream(PersistentPlan& plan, void* stream);
  // Starts that a kernel makes. Throws Failure.
  [[nodiscard]] device::StartHandle arm(PersistentPlan& plan, int starts);
  // Collective: what kernels of the ranks talk through. Throws Failure alike on all ranks.
  [[nodiscard]] std::unique_ptr<KernelTeam> make_kernel_team(const TeamMemory& memory);

  // Whether the next blocking call is one of the MPI below without Ferry, because no rank shares
  // memory with another one. Alike on all ranks. There, the first blocking call is Ferry's: when it
  // ends, the set-up has ended on this rank, with what all ranks know alike. A rank that makes its
  // next one has ended its first, and so has each other rank before it makes its own; what is in
  // flight beside does not count. So all ranks turn to the MPI below with the same call.
  [[nodiscard]] bool passes_blocking() const { return passes_.load(std::memory_order_relaxed); }

  void serve() override;
  // The MPI communicator is being freed: what is in flight goes on without it.
  void detach();

  [[nodiscard]] bool detached() const { return detached_; }

  [[nodiscard]] int rank() const { return team_.rank(); }
  [[nodiscard]] int ranks() const { return team_.ranks(); }
  // "<path>: <why>" of the operation that began last, or of one.
  [[nodiscard]] std::string explain_last();
  [[nodiscard]] std::string explain(const LaneOp& op);
  // Drive the MPI below and everything else that is in flight, for users who only test.
  void poke();

 private:
  class Wait;

  [[nodiscard]] bool carried_by_mpi() const { return ready_ && !team_.topology.shared; }
  void drive();
  [[nodiscard]] bool idle() const;
  void look_closely(LaneOp& op);
  bool run_at_once(LaneOp& op);
  bool run_by_plan(LaneOp& op);
  bool set_up();
  bool advance(LaneOp& op);
  void advance_stage(LaneOp& op);
  const std::string* prepare_nodes(LaneOp& op);
  const std::string* post_nodes(LaneOp& op);
  void settle();
  bool advance_nodes(LaneOp& op);
  std::uint64_t agree_on_frames(const PersistentPlan& plan);
  bool compile_nodes(PersistentPlan& plan, std::uint64_t framed);
  void compile_beyond(PersistentPlan& plan);
  void begin_script(LaneOp& op);
  std::unique_ptr<ReductionScript> make_script(const CollectiveDesc& desc);
  bool end_stage(LaneOp& op);
  bool hand_over(LaneOp& op);
  void remember(LaneOp& op);
  void tell(const CollectiveDesc& desc, Path path, const std::string& why);
  void bounce(LaneOp& op);
  void end_bounce(LaneOp& op);
  void begin_mpi(LaneOp& op, const std::string* why);
  void fail(const Status& status);
  void fail_by_exception();
  void end_misfit();
  WaitPolicy policy();
  void fail_plan(PersistentPlan& plan, const Status& status);
  std::vector<Offer> exchange(const std::vector<Offer>& mine, const PersistentPlan& plan);
  void gather(const void* mine, std::size_t bytes, void* all, const PersistentPlan& plan);
  void finish_set_up(const PersistentPlan& plan);
  bool make_device_plan(PersistentPlan& plan, const std::vector<Offer>& offers);
  void make_shared_plan(PersistentPlan& plan);
  void make_stages(PersistentPlan& plan);
  void drive_plans();
  void note_busy() {
    set_busy(!queue_.empty() || !plans_.empty() || !mpi_ops_.empty());
    if (lane_ == nullptr) note_network();
  }
  void note_network();
  [[nodiscard]] std::string missing(const LaneOp& op) const;

  DriveLock mutex_;
  std::unique_ptr<Bootstrap> bootstrap_;
  MPI_Comm comm_;
  CommHold hold_; // while calls wait for the set-up, which may end on the MPI below
  Team team_;
  std::unique_ptr<SetUp> set_up_;
  std::unique_ptr<Lane> lane_;
  std::unique_ptr<DeviceCalls> device_calls_; // null: blocking calls have no plans
  std::unique_ptr<NodeTeam> nodes_; // ranks on several nodes: in place of the lane
  std::atomic<bool> network_{false}; // something waits for the MPI below, which wakes nobody
  std::shared_ptr<ReductionScript> script_; // of the last blocking reduction
  bool ready_ = false;
  std::atomic<bool> shared_{false}; // lane_ or nodes_ is there
  std::atomic<bool> lets_pass_{false}; // what the set-up said
  std::atomic<bool> passes_{false};
  double next_misfit_look_ = 0;
  std::atomic<bool> detached_{false};
  Status broken_;
  std::deque<LaneOp*> queue_; // waiting for set-up or for the one at the front
  std::vector<LaneOp*> mpi_ops_; // carried by the MPI below, all at once
  std::vector<PersistentPlan*> plans_; // active ones
  Path last_path_ = Path::local;
  std::string last_text_; // copy of *last_why_, as it was in this generation of plans
  const std::string* last_why_ = nullptr;
  std::uint64_t last_generation_ = 0;
  std::set<std::string> told_; // lines of FERRY_VERBOSE that were printed
  std::atomic<unsigned> pokes_{0};
};

} // namespace ferry::core
