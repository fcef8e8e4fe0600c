// SPDX-License-Identifier: MIT
#include "lib/schedule/collective.hpp"

#include <cstring>

namespace ferry::core {

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::alltoall:
      return "alltoall";
    case Operation::allgather:
      return "allgather";
    case Operation::broadcast:
      return "broadcast";
    case Operation::gather:
      return "gather";
    case Operation::scatter:
      return "scatter";
    case Operation::barrier:
      return "barrier";
    case Operation::reduce_scatter:
      return "reduce_scatter";
    case Operation::allreduce:
      return "allreduce";
    case Operation::reduce:
      return "reduce";
  }
  return "?";
}

const Layout& CollectiveDesc::send_block(int rank) const {
  return irregular != nullptr ? irregular->send[static_cast<std::size_t>(rank)].layout
                              : send_layout;
}

const Layout& CollectiveDesc::recv_block(int rank) const {
  return irregular != nullptr ? irregular->recv[static_cast<std::size_t>(rank)].layout
                              : recv_layout;
}

namespace {

// Blocks without gaps, one behind the other.
bool side_by_side(const Layout& layout, bool one_block) {
  const auto stride = static_cast<std::int64_t>(layout.count) * layout.extent;
  return layout.contiguous() && (one_block || stride == static_cast<std::int64_t>(layout.bytes()));
}

bool sends_one_block(const CollectiveDesc& desc) {
  return desc.operation == Operation::broadcast ||
         (desc.operation == Operation::allgather && !desc.in_place);
}

} // namespace

bool CollectiveDesc::send_plain() const {
  return irregular == nullptr && side_by_side(send_layout, sends_one_block(*this));
}

bool CollectiveDesc::recv_plain() const {
  return irregular == nullptr && side_by_side(recv_layout, operation == Operation::broadcast);
}

std::int64_t CollectiveDesc::send_displacement(int rank) const {
  if (irregular != nullptr) return irregular->send[static_cast<std::size_t>(rank)].displacement;
  return sends_one_block(*this)
             ? 0
             : rank * static_cast<std::int64_t>(send_layout.count) * send_layout.extent;
}

std::int64_t CollectiveDesc::recv_displacement(int rank) const {
  if (irregular != nullptr) return irregular->recv[static_cast<std::size_t>(rank)].displacement;
  if (operation == Operation::broadcast) return 0;
  return rank * static_cast<std::int64_t>(recv_layout.count) * recv_layout.extent;
}

void CollectiveDesc::copy_own_block(int rank) const {
  if (reduction != nullptr) { // of one rank
    const std::uint64_t bytes = reduction->counts[0] * reduction->element_bytes;
    if (!in_place && bytes > 0) std::memmove(recv, send, bytes);
    return;
  }
  if (!own_block) return;
  const Layout& from = send_block(rank);
  const Layout& to = recv_block(rank);
  if (to.bytes() == 0) return;
  if (from.contiguous() && to.contiguous()) {
    std::memmove(recv_base(rank) + to.offset, send_base(rank) + from.offset, to.bytes());
  } else {
    copy_layout(to, recv_base(rank), from, send_base(rank));
  }
}

} // namespace ferry::core
