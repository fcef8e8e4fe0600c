// SPDX-License-Identifier: MIT
#include "lib/exec/node_blocks.hpp"

#include <fmt/format.h>
#include <algorithm>
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

namespace {

constexpr std::uint32_t kFrameMark = 0xf4a3ed01;

} // namespace

FramedBlocks::FramedBlocks(const CollectiveDesc& desc, int rank, int ranks, std::uint64_t capacity)
    : desc_(desc), rank_(rank), capacity_(capacity) {
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer != rank) own_longest_ = std::max(own_longest_, desc.send_block(peer).bytes());
  }
  longest_ = own_longest_;
}

void FramedBlocks::load(int rank, std::uint64_t, std::byte* to, std::uint64_t) const {
  const Layout& layout = desc_.send_block(rank);
  const bool fits = own_longest_ <= capacity_; // which has 32 bits
  const BlockFrame frame{
      kFrameMark, fits ? static_cast<std::uint32_t>(layout.bytes()) : 0, own_longest_};
  std::memcpy(to, &frame, sizeof frame);
  if (fits) pack(layout, desc_.send_base(rank), 0, frame.bytes, to + sizeof frame);
}

void FramedBlocks::store(int rank, std::uint64_t, const std::byte* from, std::uint64_t) {
  BlockFrame frame;
  std::memcpy(&frame, from, sizeof frame);
  if (frame.mark != kFrameMark) {
    note_misfit(fmt::format(
        "rank {} makes another call, rank {} an alltoall with blocks of different sizes", rank,
        rank_));
    return;
  }
  longest_ = std::max(longest_, frame.longest);
  if (frame.longest > capacity_) return;
  const Layout& layout = desc_.recv_block(rank);
  if (frame.bytes == layout.bytes() && frame.bytes <= capacity_) {
    unpack(layout, desc_.recv_base(rank), 0, frame.bytes, from + sizeof frame);
  } else {
    note_misfit(fmt::format(
        "rank {} sends {} bytes to rank {}, which expects {}", rank, frame.bytes, rank_,
        layout.bytes()));
  }
}

void FramedBlocks::note_misfit(const std::string& cause) {
  if (!status_.ok()) return;
  status_ = {
      ErrorKind::mismatch, cause,
      "make the same call with matching counts and types on every rank"};
}

} // namespace ferry::core
