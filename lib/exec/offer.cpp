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

std::uint64_t address_of(
    const Team& team, int rank, bool mapped, std::uint64_t value, const void* mine) {
  if (rank == team.rank()) return reinterpret_cast<std::uint64_t>(mine);
  if (mapped) return reinterpret_cast<std::uint64_t>(team.member(rank).heap->base() + value);
  return attach_address(rank, value);
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

} // namespace

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
  }
  return {};
}

Offer make_offer(const CollectiveDesc& desc, const Topology& topology) {
  const BufferSizes sizes = buffer_sizes(desc, topology.rank, topology.ranks);
  const Spot send = locate(desc.send, sizes.send);
  const Spot recv = locate(desc.recv, sizes.recv);
  Offer offer;
  offer.bytes = desc.block_bytes();
  offer.root = desc.root;
  offer.operation = static_cast<std::uint8_t>(desc.operation);
  offer.in_place = desc.in_place ? 1 : 0;
  offer.send = send.value;
  offer.recv = recv.value;
  offer.recv_mapped = recv.mapped ? 1 : 0;
  offer.send_mapped = (desc.in_place ? recv.mapped : send.mapped) ? 1 : 0;
  return offer;
}

namespace {

CallShape call_of(const Offer& offer) {
  return {static_cast<Operation>(offer.operation), offer.in_place != 0, offer.bytes, offer.root};
}

} // namespace

Status compare_offers(int rank, const Offer& theirs, const Offer& ours) {
  if (theirs.operation == ours.operation && theirs.bytes == ours.bytes &&
      theirs.root == ours.root && theirs.in_place == ours.in_place) {
    return {};
  }
  return mismatch(rank, call_of(theirs), call_of(ours));
}

std::vector<BufferFacts> facts_of(const std::vector<Offer>& offers) {
  std::vector<BufferFacts> facts;
  for (const Offer& offer : offers) {
    facts.push_back({offer.send_mapped != 0, offer.recv_mapped != 0});
  }
  return facts;
}

AddressBook make_book(
    const Team& team, const CollectiveDesc& desc, const std::vector<Offer>& offers) {
  AddressBook book;
  for (int rank = 0; rank < team.ranks(); ++rank) {
    const Offer& offer = offers[static_cast<std::size_t>(rank)];
    const std::byte* heap = team.member(rank).heap->base();
    RankAddresses addresses;
    addresses.send = address_of(team, rank, offer.send_mapped != 0, offer.send, desc.send);
    addresses.recv = address_of(team, rank, offer.recv_mapped != 0, offer.recv, desc.recv);
    addresses.stage = reinterpret_cast<std::uint64_t>(heap + offer.stage);
    addresses.signals =
        reinterpret_cast<std::uint64_t>(heap + offer.block + BlockLayout::signals_offset());
    book.ranks.push_back(addresses);
  }
  return book;
}

namespace {

class WindowBuilder {
 public:
  void add(std::uint64_t base, std::uint64_t bytes, bool writable, int owner, const char* name) {
    if (bytes > 0) windows_.add({base, bytes, writable, owner, 0, 0, name});
  }
  void attach(std::uint64_t base, std::uint64_t bytes, int owner, int pid, std::uint64_t remote) {
    if (bytes > 0) windows_.add({base, bytes, false, owner, pid, remote, "attached memory"});
  }
  WindowSet take() { return std::move(windows_); }

 private:
  WindowSet windows_;
};

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
    const BufferSizes sizes = buffer_sizes(desc, rank, team.ranks());
    const bool mine = rank == team.rank();
    const int pid = team.member(rank).pid;
    windows.add(at.signals, signals, true, rank, "signals");
    if (offer.stage != 0) windows.add(at.stage, stage_bytes, mine, rank, "stage");
    if (mine || (offer.send_mapped != 0 && !desc.in_place)) {
      windows.add(at.send, sizes.send, false, rank, "send buffer");
    } else if (team.topology.attach && !desc.in_place) {
      windows.attach(at.send, sizes.send, rank, pid, offer.send);
    }
    if (mine || offer.recv_mapped != 0) {
      windows.add(at.recv, sizes.recv, true, rank, "receive buffer");
    } else if (team.topology.attach && desc.in_place) {
      windows.attach(at.recv, sizes.recv, rank, pid, offer.recv);
    }
  }
  return windows.take();
}

} // namespace ferry::core
