// SPDX-License-Identifier: MIT
#include "lib/nvidia/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.hpp"

namespace ferry::nvidia {

using core::Operation;

namespace {

Piece piece(const std::byte* base, const core::Layout& layout) {
  if (layout.bytes() == 0) return {};
  const auto* const at = reinterpret_cast<const char*>(base + layout.offset);
  return {const_cast<char*>(at), layout.bytes()}; // NOLINT: sources are only read
}

void widen(Piece& range, const Piece& more) {
  if (more.at == nullptr) return;
  if (range.at == nullptr) {
    range = more;
    return;
  }
  char* const first = std::min(range.at, more.at);
  char* const end = std::max(range.at + range.bytes, more.at + more.bytes);
  range = {first, static_cast<std::uint64_t>(end - first)};
}

} // namespace

Blocks::Blocks(const core::CollectiveDesc& d, int this_rank, int all_ranks)
    : desc(d), rank(this_rank), ranks(all_ranks) {}

Piece Blocks::source(int peer) const {
  if (desc.operation == Operation::broadcast) {
    if (rank != desc.root || peer == rank) return {};
    return piece(desc.send_base(0), desc.send_layout);
  }
  if (desc.operation == Operation::allgather && desc.irregular == nullptr) {
    return desc.in_place ? piece(desc.recv_base(rank), desc.recv_layout)
                         : piece(desc.send_base(0), desc.send_layout);
  }
  if (desc.in_place && desc.irregular == nullptr) {
    return piece(desc.recv_base(peer), desc.recv_layout);
  }
  return piece(desc.send_base(peer), desc.send_block(peer));
}

Piece Blocks::result(int peer) const {
  if (desc.operation == Operation::broadcast) {
    if (peer != desc.root || rank == desc.root) return {};
    return piece(desc.recv_base(0), desc.recv_layout);
  }
  return piece(desc.recv_base(peer), desc.recv_block(peer));
}

Piece Blocks::sending() const {
  Piece range;
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer != rank || keeps_own()) widen(range, source(peer));
  }
  return range;
}

Piece Blocks::receiving() const {
  Piece range;
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer != rank || keeps_own()) widen(range, result(peer));
  }
  return range;
}

bool Blocks::keeps_own() const {
  return desc.own_block && !desc.in_place && desc.operation != Operation::broadcast &&
         source(rank).bytes != 0;
}

std::vector<Traffic::Side> Traffic::of(const Blocks& blocks) {
  std::vector<Side> sides(static_cast<std::size_t>(blocks.ranks));
  const Piece all = blocks.receiving();
  for (int peer = 0; peer < blocks.ranks; ++peer) {
    if (peer == blocks.rank) continue;
    const Piece in = blocks.result(peer);
    Side& side = sides[static_cast<std::size_t>(peer)];
    side.sent = blocks.source(peer).bytes;
    side.received = in.bytes;
    if (in.bytes != 0) side.offset = static_cast<std::uint64_t>(in.at - all.at);
  }
  return sides;
}

std::uint64_t Traffic::largest() const {
  std::uint64_t most = 0;
  for (const Side& s : sides_) most = std::max(most, s.sent);
  return most;
}

void Traffic::check() const {
  const auto ranks = static_cast<int>(ranks_);
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (side(from, to).sent == side(to, from).received) continue;
      throw core::Failure(
          core::ErrorKind::mismatch,
          fmt::format(
              "rank {} sends {} bytes to rank {}, which expects {}", from, side(from, to).sent, to,
              side(to, from).received),
          "give matching counts and types on both sides");
    }
  }
}

} // namespace ferry::nvidia
