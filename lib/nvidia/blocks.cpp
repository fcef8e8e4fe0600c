// SPDX-License-Identifier: MIT
#include "lib/nvidia/wiring.hpp"

namespace ferry::nvidia {

using core::Operation;

Blocks::Blocks(const core::CollectiveDesc& d, int this_rank, int all_ranks)
    : desc(d), rank(this_rank), ranks(all_ranks), bytes(d.block_bytes()) {}

const char* Blocks::source(int peer) const {
  const auto* const send = static_cast<const char*>(desc.send);
  const auto* const recv = static_cast<const char*>(desc.recv);
  switch (desc.operation) {
    case Operation::alltoall:
      return (desc.in_place ? recv : send) + static_cast<std::uint64_t>(peer) * bytes;
    case Operation::allgather:
      return desc.in_place ? recv + static_cast<std::uint64_t>(rank) * bytes : send;
    case Operation::broadcast:
      return rank == desc.root && peer != rank ? send : nullptr;
  }
  return nullptr;
}

char* Blocks::result(int peer) const {
  auto* const recv = static_cast<char*>(desc.recv);
  if (desc.operation == Operation::broadcast) {
    return peer == desc.root && rank != desc.root ? recv : nullptr;
  }
  return recv + static_cast<std::uint64_t>(peer) * bytes;
}

std::uint64_t Blocks::target_offset(int sender) const {
  if (desc.operation == Operation::broadcast) return 0;
  return static_cast<std::uint64_t>(sender) * bytes;
}

bool Blocks::keeps_own() const {
  return desc.operation != Operation::broadcast && !desc.in_place;
}

const void* Blocks::sending() const {
  if (desc.operation == Operation::broadcast) return rank == desc.root ? desc.send : nullptr;
  return desc.in_place ? nullptr : desc.send;
}

void* Blocks::receiving() const {
  if (desc.operation == Operation::broadcast && rank == desc.root) return nullptr;
  return desc.recv;
}

std::uint64_t Blocks::received_bytes() const {
  if (receiving() == nullptr) return 0;
  const auto blocks = desc.operation == Operation::broadcast ? 1 : ranks;
  return static_cast<std::uint64_t>(blocks) * bytes;
}

} // namespace ferry::nvidia
