// SPDX-License-Identifier: MIT
#include "lib/exec/offer.hpp"

#include "lib/exec/slot_channel.hpp"
#include "lib/memory/heap.hpp"

namespace ferry::core {
namespace {

// Engine addresses of other processes' private memory: above all pointers of user space.
std::uint64_t attach_address(int rank, std::uint64_t address) {
  return (std::uint64_t{1} << 62) + (static_cast<std::uint64_t>(rank) << 48) + address;
}

struct Spot {
  std::uint64_t value = 0;
  bool mapped = false;
};

Spot locate(const void* pointer, std::uint64_t bytes) {
  const Heap* heap = Heap::existing();
  if (heap != nullptr && bytes > 0) {
    if (const auto offset = heap->offset_of(pointer, bytes)) return {*offset, true};
  }
  return {reinterpret_cast<std::uint64_t>(pointer), false};
}

std::uint8_t fact(bool holds, std::uint8_t bit) {
  return holds ? bit : std::uint8_t{0};
}

// One block of this rank that a peer may want to reach.
struct Reach {
  Spot spot;
  bool plain = true;
};

Reach reach(const Layout& layout, const std::byte* base) {
  if (!layout.contiguous()) return {{}, false};
  return {locate(base + layout.offset, layout.bytes()), true};
}

void set_reach(Offer& offer, const Reach& send, const Reach& recv) {
  offer.send = send.spot.value;
  offer.recv = recv.spot.value;
  offer.facts = static_cast<std::uint8_t>(
      fact(send.spot.mapped, kSendMapped) | fact(recv.spot.mapped, kRecvMapped) |
      fact(send.plain, kSendPlain) | fact(recv.plain, kRecvPlain));
}

Offer bare_offer(const CollectiveDesc& desc) {
  Offer offer;
  offer.root = desc.root;
  offer.operation = static_cast<std::uint8_t>(desc.operation);
  offer.in_place = call_bits(desc);
  return offer;
}

// Bytes of the buffers that a regular call reads and writes on one rank.
struct BufferSizes {
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
};

BufferSizes buffer_sizes(const CollectiveDesc& desc, int rank, int ranks) {
  const std::uint64_t block = desc.block_bytes();
  const std::uint64_t all = block * static_cast<std::uint64_t>(ranks);
  switch (desc.operation) {
    case Operation::alltoall:
      return {desc.in_place ? 0 : all, all};
    case Operation::allgather:
      return {desc.in_place ? 0 : block, all};
    case Operation::broadcast:
      return rank == desc.root ? BufferSizes{block, 0} : BufferSizes{0, block};
    default:
      return {};
  }
}

} // namespace

Offer make_offer(const CollectiveDesc& desc, const Topology& topology) {
  const BufferSizes sizes = buffer_sizes(desc, topology.rank, topology.ranks);
  Reach recv{{}, desc.recv_plain()};
  if (recv.plain) recv.spot = locate(desc.recv_start(), sizes.recv);
  Reach send = recv;
  if (!desc.in_place) {
    send = {{}, desc.send_plain()};
    if (send.plain) send.spot = locate(desc.send_start(), sizes.send);
  }
  Offer offer = bare_offer(desc);
  offer.send_bytes = desc.block_bytes();
  offer.recv_bytes = desc.block_bytes();
  set_reach(offer, send, recv);
  return offer;
}

Offer make_pair_offer(const CollectiveDesc& desc, int peer) {
  const Reach recv = reach(desc.recv_block(peer), desc.recv_base(peer));
  const Reach send = desc.in_place ? recv : reach(desc.send_block(peer), desc.send_base(peer));
  Offer offer = bare_offer(desc);
  offer.recv_bytes = desc.recv_block(peer).bytes();
  offer.send_bytes = desc.in_place ? offer.recv_bytes : desc.send_block(peer).bytes();
  set_reach(offer, send, recv);
  return offer;
}

namespace {

CallShape shape_of(const Offer& offer, std::uint64_t bytes) {
  return {
      static_cast<Operation>(offer.operation), (offer.in_place & kInPlaceBit) != 0, bytes,
      offer.root};
}

} // namespace

Status compare_offers(int rank, const Offer& theirs, const Offer& ours) {
  const bool alike = theirs.operation == ours.operation && theirs.root == ours.root &&
                     theirs.in_place == ours.in_place;
  if (alike && theirs.send_bytes == ours.recv_bytes && theirs.recv_bytes == ours.send_bytes) {
    return {};
  }
  const bool inward = !alike || theirs.send_bytes != ours.recv_bytes;
  return mismatch(
      rank, shape_of(theirs, inward ? theirs.send_bytes : theirs.recv_bytes),
      shape_of(ours, inward ? ours.recv_bytes : ours.send_bytes));
}

BufferFacts facts_of(const Offer& offer) {
  const auto has = [&](std::uint8_t bit) { return (offer.facts & bit) != 0; };
  return {has(kSendMapped), has(kRecvMapped), has(kSendPlain), has(kRecvPlain)};
}

std::vector<BufferFacts> facts_of(const std::vector<Offer>& offers) {
  std::vector<BufferFacts> facts;
  for (const Offer& offer : offers) facts.push_back(facts_of(offer));
  return facts;
}

std::vector<PairPlan> pairs_of(
    const CollectiveDesc& desc, const Topology& topology, const std::vector<Offer>& theirs) {
  std::vector<PairPlan> pairs(static_cast<std::size_t>(topology.ranks));
  for (int rank = 0; rank < topology.ranks; ++rank) {
    PairPlan& pair = pairs[static_cast<std::size_t>(rank)];
    pair.recv_bytes = desc.recv_block(rank).bytes();
    pair.send_bytes = desc.in_place ? pair.recv_bytes : desc.send_block(rank).bytes();
    if (theirs.empty() || rank == topology.rank) continue;
    pair.mine = facts_of(make_pair_offer(desc, rank));
    pair.theirs = facts_of(theirs[static_cast<std::size_t>(rank)]);
  }
  return pairs;
}

namespace {

bool has(const Offer& offer, std::uint8_t bit) {
  return (offer.facts & bit) != 0;
}

std::vector<OwnBlock> own_blocks(const CollectiveDesc& desc, int ranks, bool recv) {
  std::vector<OwnBlock> blocks;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::byte* base = recv ? desc.recv_base(rank) : desc.send_base(rank);
    blocks.push_back(
        {reinterpret_cast<std::uint64_t>(base),
         recv ? desc.recv_block(rank) : desc.send_block(rank)});
  }
  return blocks;
}

RankAddresses own_addresses(const CollectiveDesc& desc) {
  RankAddresses at;
  at.send = reinterpret_cast<std::uint64_t>(desc.send_start());
  at.recv = reinterpret_cast<std::uint64_t>(desc.recv_start());
  return at;
}

RankAddresses addresses_of(const Team& team, int rank, const Offer& offer) {
  const std::byte* heap = team.member(rank).heap->base();
  const auto at = [&](bool mapped, std::uint64_t value) {
    return mapped ? reinterpret_cast<std::uint64_t>(heap + value) : attach_address(rank, value);
  };
  RankAddresses addresses;
  addresses.send = at(has(offer, kSendMapped), offer.send);
  addresses.recv = at(has(offer, kRecvMapped), offer.recv);
  return addresses;
}

} // namespace

AddressBook make_book(
    const Team& team, const CollectiveDesc& desc, const std::vector<Offer>& offers) {
  AddressBook book;
  book.rank = team.rank();
  for (int rank = 0; rank < team.ranks(); ++rank) {
    const Offer& offer = offers[static_cast<std::size_t>(rank)];
    const bool mine = rank == team.rank();
    RankAddresses at = mine ? own_addresses(desc) : addresses_of(team, rank, offer);
    if (!is_exchange(desc)) {
      at.send_stride = desc.block_bytes();
      at.recv_stride = desc.block_bytes();
    }
    const std::byte* heap = team.member(rank).heap->base();
    at.stage = reinterpret_cast<std::uint64_t>(heap + offer.stage);
    at.signals =
        reinterpret_cast<std::uint64_t>(heap + offer.block + BlockLayout::signals_offset());
    book.ranks.push_back(at);
  }
  if (!desc.send_plain() && !desc.in_place) book.send = own_blocks(desc, team.ranks(), false);
  if (!desc.recv_plain()) book.recv = own_blocks(desc, team.ranks(), true);
  return book;
}

namespace {

class WindowBuilder {
 public:
  void add(std::uint64_t base, std::uint64_t bytes, bool writable, int owner, const char* name) {
    if (bytes > 0) windows_.add({base, bytes, writable, owner, 0, 0, name});
  }
  void attach(
      std::uint64_t base, std::uint64_t bytes, bool writable, int owner, int pid,
      std::uint64_t remote) {
    if (bytes > 0) windows_.add({base, bytes, writable, owner, pid, remote, "attached memory"});
  }
  WindowSet take() { return std::move(windows_); }

 private:
  WindowSet windows_;
};

// The range from the first to behind the last byte of blocks that do not lie side by side.
void add_range(
    WindowBuilder& windows, const std::vector<OwnBlock>& blocks, bool writable, int owner) {
  std::uint64_t low = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t high = 0;
  for (const OwnBlock& block : blocks) {
    if (block.layout.bytes() == 0) continue;
    low = std::min(low, block.address + static_cast<std::uint64_t>(block.layout.lower()));
    high = std::max(high, block.address + static_cast<std::uint64_t>(block.layout.upper()));
  }
  if (low < high) {
    windows.add(low, high - low, writable, owner, writable ? "receive buffer" : "send buffer");
  }
}

void add_own(
    WindowBuilder& windows, const CollectiveDesc& desc, const AddressBook& book, int ranks) {
  const RankAddresses& at = book.ranks[static_cast<std::size_t>(book.rank)];
  const BufferSizes sizes = buffer_sizes(desc, book.rank, ranks);
  add_range(windows, book.send, false, book.rank);
  add_range(windows, book.recv, true, book.rank);
  if (book.send.empty()) windows.add(at.send, sizes.send, false, book.rank, "send buffer");
  if (book.recv.empty()) windows.add(at.recv, sizes.recv, true, book.rank, "receive buffer");
}

void add_peer(
    WindowBuilder& windows, const Team& team, const CollectiveDesc& desc, const Offer& offer,
    const RankAddresses& at, int rank) {
  BufferSizes sizes{offer.send_bytes, offer.recv_bytes};
  if (!is_exchange(desc)) sizes = buffer_sizes(desc, rank, team.ranks());
  const int pid = team.member(rank).pid;
  const bool attach = team.topology.attach;
  if (has(offer, kRecvMapped)) {
    windows.add(at.recv, sizes.recv, true, rank, "receive buffer");
  } else if (attach && has(offer, kRecvPlain)) {
    const bool shares = desc.operation == Operation::broadcast; // its root may write there
    if (desc.in_place || shares) windows.attach(at.recv, sizes.recv, shares, rank, pid, offer.recv);
  }
  if (desc.in_place) return;
  if (has(offer, kSendMapped)) {
    windows.add(at.send, sizes.send, false, rank, "send buffer");
  } else if (attach && has(offer, kSendPlain)) {
    windows.attach(at.send, sizes.send, false, rank, pid, offer.send);
  }
}

} // namespace

WindowSet make_windows(
    const Team& team, const CollectiveDesc& desc, const std::vector<Offer>& offers,
    const AddressBook& book, std::uint64_t stage_bytes) {
  WindowBuilder windows;
  const std::uint64_t signals =
      static_cast<std::uint64_t>(kSignalWords * team.ranks()) * kSignalStride;
  for (int rank = 0; rank < team.ranks(); ++rank) {
    const Offer& offer = offers[static_cast<std::size_t>(rank)];
    const RankAddresses& at = book.ranks[static_cast<std::size_t>(rank)];
    const bool mine = rank == team.rank();
    windows.add(at.signals, signals, true, rank, "signals");
    if (offer.stage != 0) windows.add(at.stage, stage_bytes, mine, rank, "stage");
    if (mine) {
      add_own(windows, desc, book, team.ranks());
    } else {
      add_peer(windows, team, desc, offer, at, rank);
    }
  }
  return windows.take();
}

} // namespace ferry::core
