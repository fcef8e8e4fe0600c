// SPDX-License-Identifier: MIT
#include "lib/amd/unequal.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.hpp"

namespace ferry::amd {
namespace {

using core::ErrorKind;
using core::Failure;

// From the first byte of any block to behind the last.
struct Range {
  std::uint64_t low = UINT64_MAX;
  std::uint64_t high = 0;

  void add(std::uint64_t at, std::uint64_t bytes) {
    if (bytes == 0) return;
    low = std::min(low, at);
    high = std::max(high, at + bytes);
  }
  [[nodiscard]] std::uint64_t bytes() const { return high > low ? high - low : 0; }
};

std::uint64_t start_of(const std::byte* base, const core::Layout& layout) {
  if (layout.contiguous()) return reinterpret_cast<std::uint64_t>(base + layout.offset);
  throw Failure(
      ErrorKind::type, "blocks with gaps in memory of a GPU",
      "pack them, or use blocks without gaps");
}

} // namespace

UnequalBlocks unequal_blocks(const core::CollectiveDesc& desc, int rank) {
  UnequalBlocks all;
  Range out;
  Range in;
  const auto ranks = static_cast<int>(desc.irregular->send.size());
  for (int peer = 0; peer < ranks; ++peer) {
    PairBlocks& pair = all.pairs.emplace_back();
    if (peer == rank && !desc.own_block) continue;
    pair.send_bytes = desc.send_block(peer).bytes();
    pair.recv_bytes = desc.recv_block(peer).bytes();
    if (pair.send_bytes > 0) pair.send_at = start_of(desc.send_base(peer), desc.send_block(peer));
    if (pair.recv_bytes > 0) pair.recv_at = start_of(desc.recv_base(peer), desc.recv_block(peer));
    out.add(pair.send_at, pair.send_bytes);
    in.add(pair.recv_at, pair.recv_bytes);
  }
  for (PairBlocks& pair : all.pairs) {
    pair.send_at = pair.send_bytes > 0 ? pair.send_at - out.low : 0;
    pair.recv_at = pair.recv_bytes > 0 ? pair.recv_at - in.low : 0;
  }
  all.buffers.send_bytes = desc.in_place ? 0 : out.bytes();
  all.buffers.recv_bytes = in.bytes();
  if (all.buffers.send_bytes > 0) all.buffers.send = reinterpret_cast<const void*>(out.low);
  if (all.buffers.recv_bytes > 0) all.buffers.recv = reinterpret_cast<void*>(in.low);
  return all;
}

void meet(core::DeviceTeam& team, std::vector<PairBlocks>& pairs) {
  const std::size_t ranks = pairs.size();
  std::vector<PairBlocks> all(ranks * ranks);
  team.allgather(pairs.data(), ranks * sizeof(PairBlocks), all.data());
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      const std::uint64_t sent = all[from * ranks + to].send_bytes;
      const std::uint64_t expected = all[to * ranks + from].recv_bytes;
      if (sent == expected) continue;
      throw Failure(
          ErrorKind::mismatch,
          fmt::format(
              "rank {} sends {} bytes to rank {}, which expects {}", from, sent, to, expected),
          "give matching counts and types on both sides");
    }
  }
  const auto me = static_cast<std::size_t>(team.rank());
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    pairs[peer].their_recv_at = all[peer * ranks + me].recv_at;
  }
}

} // namespace ferry::amd
