// SPDX-License-Identifier: MIT
#include "lib/exec/node_blocks.hpp"

#include <fmt/format.h>
#include <cstring>

namespace ferry::core {

void DescBlocks::load(int rank, std::uint64_t skip, std::byte* to, std::uint64_t bytes) const {
  const bool same_for_all =
      desc_.operation == Operation::allgather || desc_.operation == Operation::broadcast;
  const int block = same_for_all ? rank_ : rank;
  if (desc_.in_place) {
    pack(desc_.recv_block(block), desc_.recv_base(block), skip, bytes, to);
  } else {
    pack(desc_.send_block(block), desc_.send_base(block), skip, bytes, to);
  }
}

void DescBlocks::store(int rank, std::uint64_t skip, const std::byte* from, std::uint64_t bytes) {
  unpack(desc_.recv_block(rank), desc_.recv_base(rank), skip, bytes, from);
}

FramedBlocks::FramedBlocks(const CollectiveDesc& desc, int rank, int ranks, std::uint64_t capacity)
    : desc_(desc), rank_(rank), capacity_(capacity) {
  for (int peer = 0; peer < ranks; ++peer) {
    const bool fits = peer == rank || desc.send_block(peer).bytes() <= capacity;
    own_too_long_ = own_too_long_ || !fits;
  }
  too_long_ = own_too_long_;
}

void FramedBlocks::load(int rank, std::uint64_t, std::byte* to, std::uint64_t) const {
  const Layout& layout = desc_.send_block(rank);
  const BlockFrame frame{layout.bytes(), own_too_long_ ? std::uint64_t{1} : 0};
  std::memcpy(to, &frame, sizeof frame);
  // Where a block of this rank is too long, none of them is read out of a frame.
  if (!own_too_long_) pack(layout, desc_.send_base(rank), 0, frame.bytes, to + sizeof frame);
}

void FramedBlocks::store(int rank, std::uint64_t, const std::byte* from, std::uint64_t) {
  BlockFrame frame;
  std::memcpy(&frame, from, sizeof frame);
  if (frame.too_long != 0) {
    too_long_ = true;
    return;
  }
  const Layout& layout = desc_.recv_block(rank);
  if (frame.bytes == layout.bytes() && frame.bytes <= capacity_) {
    unpack(layout, desc_.recv_base(rank), 0, frame.bytes, from + sizeof frame);
  } else if (status_.ok()) {
    status_ = {
        ErrorKind::mismatch,
        fmt::format(
            "rank {} sends {} bytes to rank {}, which expects {}", rank, frame.bytes, rank_,
            layout.bytes()),
        "make the same call with matching counts and types on every rank"};
  }
}

} // namespace ferry::core
