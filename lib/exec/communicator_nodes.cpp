// SPDX-License-Identifier: MIT
// The collectives of a communicator whose ranks are on several nodes.
#include <algorithm>

#include "lib/exec/communicator.hpp"
#include "lib/exec/graveyard.hpp"

namespace ferry::core {

// Exchanges are set up when the call is made, or as soon as the nodes are known, in the order that
// all ranks have in common. Null when it is done, else why the MPI below carries this call. The
// lock is held.
const std::string* Communicator::prepare_nodes(LaneOp& op) {
  if (nodes_ == nullptr) return &team_.topology.why_not_shared;
  if (const std::string* below = nodes_->refusal(op.desc); below != nullptr) return below;
  if (op.desc.reduction != nullptr) begin_script(op);
  op.nodes = nodes_->prepare(op.desc);
  return nullptr;
}

// The same at the call itself: an error ends everything on this communicator. The lock is held.
const std::string* Communicator::post_nodes(LaneOp& op) {
  try {
    return prepare_nodes(op);
  } catch (const Failure& failure) {
    fail(failure.status());
    op.status = failure.status();
    op.phase = LaneOp::Phase::complete;
    return nullptr;
  }
}

// The set-up has ended without a lane: now the calls that waited for it begin. The lock is held.
void Communicator::settle() {
  try {
    for (auto at = queue_.begin(); at != queue_.end();) {
      const std::string* below = prepare_nodes(**at);
      if (below == nullptr) {
        ++at;
        continue;
      }
      begin_mpi(**at, below);
      at = queue_.erase(at);
    }
  } catch (const Failure& failure) {
    fail(failure.status());
    throw;
  }
}

// True when the operation at the front of the queue leaves it.
bool Communicator::advance_nodes(LaneOp& op) {
  if (op.phase == LaneOp::Phase::queued) {
    op.path = Path::nodes;
    op.why = &op.nodes->plan().why;
    if (!op.nodes->framed()) remember(op); // else it may still go by the MPI below
    op.nodes->start();
    op.phase = LaneOp::Phase::running;
  }
  if (op.nodes->progress() == Poll::pending) return false;
  const Status misfit = op.nodes->compare(nodes_->mates());
  if (!misfit.ok()) throw Failure(misfit);
  const bool too_long = op.nodes->too_long();
  op.status = op.nodes->status();
  if (!too_long) remember(op);
  const std::string* below = too_long ? nodes_->why_too_long(op.nodes->longest()) : nullptr;
  if (op.nodes->framed()) nodes_->note_longest(op.nodes->longest());
  op.nodes.reset();
  if (below != nullptr) {
    begin_mpi(op, below);
    return true;
  }
  if (op.script != nullptr) op.status = op.script->finish(op.stage);
  op.phase = LaneOp::Phase::complete;
  return true;
}

// The lock is held.
void Communicator::note_network() {
  const auto waits = [](const LaneOp* op) {
    return op->nodes != nullptr && op->nodes->in_exchange();
  };
  const bool network = !mpi_ops_.empty() || (!queue_.empty() && waits(queue_.front())) ||
                       std::any_of(plans_.begin(), plans_.end(), [](const PersistentPlan* plan) {
                         return plan->on_network();
                       });
  network_.store(network, std::memory_order_relaxed);
}

// 0: without frames.
std::uint64_t Communicator::agree_on_frames(const PersistentPlan& plan) {
  const CollectiveDesc& desc = plan.desc();
  if (!nodes_->may_frame(desc)) return 0;
  Offer mine;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer != rank()) mine.send_bytes = std::max(mine.send_bytes, desc.send_block(peer).bytes());
  }
  std::uint64_t longest = 0;
  for (const Offer& offer : exchange({mine}, plan)) longest = std::max(longest, offer.send_bytes);
  return nodes_->frames_for(desc, longest);
}

// False when a rank has no memory for it: the MPI below carries the plan.
bool Communicator::compile_nodes(PersistentPlan& plan, std::uint64_t framed) {
  const CollectiveDesc& desc = plan.desc();
  plan.check(exchange({plan.offer()}, plan));
  Offer mine;
  std::byte* block = nullptr;
  try {
    block = nodes_->provide(desc, framed);
    if (block != nullptr) {
      mine.block = static_cast<std::uint64_t>(block - team_.me().heap->base());
    }
  } catch (const Failure&) {
    mine.no_memory = 1;
  }
  std::vector<std::uint64_t> offsets;
  bool memory = true;
  for (const Offer& offer : exchange({mine}, plan)) {
    offsets.push_back(offer.block);
    memory = memory && offer.no_memory == 0;
  }
  if (!memory) {
    if (block != nullptr) Heap::instance().release(block);
    return false;
  }
  const std::lock_guard lock(mutex_);
  plan.compile_nodes(nodes_->link(desc, block, offsets, framed), nodes_->mates());
  return true;
}

// The ranks do not all share memory.
void Communicator::compile_beyond(PersistentPlan& plan) {
  const std::string* below = &team_.topology.why_not_shared;
  const std::uint64_t framed = nodes_ != nullptr ? agree_on_frames(plan) : 0;
  if (nodes_ != nullptr) below = framed > 0 ? nullptr : nodes_->refusal(plan.desc());
  if (below == nullptr && plan.desc().reduction != nullptr) {
    make_stages(plan);
  } else if (below != nullptr || !compile_nodes(plan, framed)) {
    plan.compile_mpi(comm_, below != nullptr ? *below : "a rank has no shared memory left");
  }
}

} // namespace ferry::core
