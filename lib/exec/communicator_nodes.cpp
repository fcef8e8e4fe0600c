// SPDX-License-Identifier: MIT
// The collectives of a communicator whose ranks are on several nodes.
#include <algorithm>

#include "lib/exec/communicator.hpp"
#include "lib/exec/graveyard.hpp"

namespace ferry::core {

// Exchanges are set up when the call is made, in the order that all ranks have in common. False
// when this call has no plan over nodes. The lock is held.
bool Communicator::prepare_nodes(LaneOp& op) {
  if (nodes_ == nullptr || !nodes_->takes(op.desc)) return false;
  op.nodes = nodes_->prepare(op.desc);
  return true;
}

// The same at the call itself: an error ends everything on this communicator. The lock is held.
bool Communicator::post_nodes(LaneOp& op) {
  try {
    return prepare_nodes(op);
  } catch (const Failure& failure) {
    fail(failure.status());
    op.status = failure.status();
    op.phase = LaneOp::Phase::complete;
    return true;
  }
}

// True when the operation at the front of the queue leaves it.
bool Communicator::advance_nodes(LaneOp& op) {
  if (op.phase == LaneOp::Phase::queued) {
    op.path = Path::nodes;
    op.why = &op.nodes->plan().why;
    remember(op);
    op.nodes->start();
    op.phase = LaneOp::Phase::running;
  }
  const bool done = op.nodes->progress() == Poll::ready;
  network_.store(!done && op.nodes->in_exchange(), std::memory_order_relaxed);
  if (!done) return false;
  op.nodes.reset();
  op.phase = LaneOp::Phase::complete;
  return true;
}

// False when a rank has no memory for it: the MPI below carries the plan.
bool Communicator::compile_nodes(PersistentPlan& plan) {
  const CollectiveDesc& desc = plan.desc();
  plan.check(exchange({plan.offer()}, plan));
  Offer mine;
  std::byte* block = nullptr;
  try {
    block = nodes_->provide(desc);
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
  plan.compile_nodes(nodes_->link(desc, block, offsets), nodes_->mates());
  return true;
}

// The ranks do not all share memory.
void Communicator::compile_beyond(PersistentPlan& plan) {
  const bool nodes = nodes_ != nullptr && nodes_->takes(plan.desc());
  if (nodes && compile_nodes(plan)) return;
  plan.compile_mpi(
      comm_, nodes ? "a rank has no shared memory left" : team_.topology.why_not_shared);
}

} // namespace ferry::core
