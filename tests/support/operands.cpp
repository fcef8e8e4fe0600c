// SPDX-License-Identifier: MIT
#include "operands.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "lib/memory/heap.hpp"
#include "lib/memory/type_map.hpp"
#include "pattern.hpp"

namespace ferry::test {

using core::Operation;

namespace {

constexpr std::size_t kGuard = 64;
constexpr std::size_t kOdd = 4099; // over a page, and aligned to nothing
constexpr std::size_t kBetween = 24; // bytes between the blocks of an exchange
constexpr Stream kCanary{0xca9a51ULL, -7, -9};

// What one rank gives to another. In place both directions are alike.
std::size_t bytes_between(const Call& call, int from, int to) {
  if (!call.uneven) return call.bytes;
  const bool by_sender =
      call.operation == Operation::allgather || call.operation == Operation::gather;
  const bool symmetric = call.in_place && call.operation == Operation::alltoall;
  if (symmetric && from > to) std::swap(from, to);
  if (by_sender) to = 0;
  if (call.operation == Operation::scatter) from = 0;
  const std::size_t choices[] = {0, call.bytes, call.bytes / 2, call.bytes, call.bytes / 5, 40};
  const std::uint64_t word = mix(call.bytes * 4096 + static_cast<std::size_t>(from * 64 + to));
  return choices[word % std::size(choices)] / 8 * 8;
}

int receiver_of(const Call& call, int to) {
  const bool each = call.operation == Operation::alltoall || call.operation == Operation::scatter;
  return each ? to : kEveryone;
}

} // namespace

Guarded::Guarded(Memory memory, std::size_t bytes)
    : mapped_(memory != Memory::foreign), bytes_(bytes) {
  const std::size_t total = bytes + 2 * kGuard + kOdd;
  void* const memory_of_it = mapped_ ? core::Heap::instance().allocate(total) : std::malloc(total);
  if (memory_of_it == nullptr) throw std::bad_alloc();
  base_ = static_cast<unsigned char*>(memory_of_it);
  data_ = base_ + kGuard + (memory == Memory::inside ? kOdd : 0);
  fill(data_ - kGuard, kGuard, kCanary);
  fill(data_ + bytes_, kGuard, kCanary);
}

Guarded::~Guarded() {
  if (mapped_) {
    core::Heap::instance().release(base_);
  } else {
    std::free(base_);
  }
}

bool Guarded::intact() const {
  return !first_difference(data_ - kGuard, kGuard, kCanary) &&
         !first_difference(data_ + bytes_, kGuard, kCanary);
}

std::string describe(const Call& call) {
  return std::string(core::name_of(call.operation)) + (call.uneven ? " uneven" : "") +
         (call.gaps ? " with gaps" : "") + (call.in_place ? " in place" : "") + " of " +
         std::to_string(call.bytes) + " bytes, root " + std::to_string(call.root);
}

Operands::Operands(const Call& call, int rank, int ranks, Memory send, Memory recv)
    : call_(call),
      rank_(rank),
      ranks_(ranks),
      gaps_(call.gaps && rank % 2 == 1),
      send_(send, size(true)),
      recv_(recv, size(false)),
      sent_(send_.bytes()),
      expected_(recv_.bytes()) {}

std::size_t Operands::element(std::size_t bytes) const {
  return bytes % 64 == 0 ? 64 : bytes % 8 == 0 ? 8 : 1;
}

// With gaps an element is the middle third of its extent.
std::size_t Operands::span(std::size_t bytes) const {
  return gaps_ ? 3 * bytes : bytes;
}

core::Layout Operands::layout(std::size_t bytes) const {
  if (!gaps_ || bytes == 0) return core::contiguous_layout(bytes, 1);
  const std::size_t each = element(bytes);
  core::Pieces middle;
  middle.append(core::Pieces(each), static_cast<std::int64_t>(each));
  core::Layout layout;
  layout.count = bytes / each;
  layout.element_bytes = each;
  layout.extent = static_cast<std::int64_t>(3 * each);
  layout.map = std::move(middle).map();
  return layout;
}

bool Operands::in_place_here() const {
  const bool rooted = call_.operation == Operation::gather || call_.operation == Operation::scatter;
  return call_.in_place && (!rooted || rank_ == call_.root);
}

// The blocks of a side, in the order in which they lie. Those that are received in an exchange lie
// from the last to the first.
std::vector<Operands::Piece> Operands::pieces(bool send) const {
  const Operation op = call_.operation;
  const bool root = rank_ == call_.root;
  std::vector<int> peers;
  const auto everyone = [&] {
    for (int rank = 0; rank < ranks_; ++rank) peers.push_back(rank);
  };
  if (send) {
    const bool none = op == Operation::broadcast || (in_place_here() && op != Operation::scatter);
    if (op == Operation::alltoall || (op == Operation::scatter && root)) everyone();
    if (op == Operation::allgather || op == Operation::gather) peers.push_back(call_.root);
    if (none) peers.clear();
  } else {
    const bool none = op == Operation::scatter && in_place_here();
    if (op == Operation::alltoall || op == Operation::allgather ||
        (op == Operation::gather && root)) {
      everyone();
    }
    if (op == Operation::broadcast || op == Operation::scatter) peers.push_back(call_.root);
    if (none) peers.clear();
    if (call_.exchange()) std::reverse(peers.begin(), peers.end());
  }
  std::vector<Piece> made;
  std::size_t at = 0;
  for (const int peer : peers) {
    const std::size_t bytes =
        send ? bytes_between(call_, rank_, peer) : bytes_between(call_, peer, rank_);
    made.push_back({peer, at, bytes});
    at += span(bytes) + (call_.exchange() ? kBetween : 0);
  }
  return made;
}

std::size_t Operands::size(bool send) const {
  const std::vector<Piece> all = pieces(send);
  return all.empty() ? 0 : all.back().at + span(all.back().bytes);
}

void Operands::describe_exchange(core::CollectiveDesc& desc) const {
  core::Irregular blocks;
  blocks.send.resize(static_cast<std::size_t>(ranks_));
  blocks.recv.resize(static_cast<std::size_t>(ranks_));
  const auto block = [&](const Piece& piece) {
    return core::Block{static_cast<std::int64_t>(piece.at), layout(piece.bytes)};
  };
  for (const Piece& piece : pieces(false)) {
    blocks.recv[static_cast<std::size_t>(piece.peer)] = block(piece);
  }
  for (const Piece& piece : pieces(true)) {
    blocks.send[static_cast<std::size_t>(piece.peer)] = block(piece);
  }
  const bool gathered = call_.operation == Operation::allgather;
  const auto me = static_cast<std::size_t>(rank_);
  if (gathered && in_place_here()) {
    for (auto& send : blocks.send) send = blocks.recv[me];
  } else if (gathered) {
    const core::Block own = blocks.send[static_cast<std::size_t>(call_.root)];
    for (auto& send : blocks.send) send = own;
  } else if (call_.operation == Operation::alltoall && in_place_here()) {
    blocks.send = blocks.recv;
  }
  desc.in_place = call_.in_place && call_.operation == Operation::alltoall;
  desc.irregular = std::make_shared<core::Irregular>(std::move(blocks));
}

core::CollectiveDesc Operands::desc(core::Form form) const {
  core::CollectiveDesc desc;
  desc.operation = call_.operation;
  desc.form = form;
  desc.root = call_.root;
  const bool from_recv = call_.operation == Operation::broadcast ||
                         (in_place_here() && call_.operation != Operation::gather &&
                          call_.operation != Operation::scatter);
  desc.own_block = call_.operation != Operation::broadcast && !in_place_here();
  desc.send = from_recv ? recv_.data() : send_.data();
  desc.recv = recv_.data();
  if (call_.exchange()) {
    describe_exchange(desc);
    return desc;
  }
  desc.in_place = call_.in_place;
  desc.send_layout = layout(call_.bytes);
  desc.recv_layout = desc.send_layout;
  return desc;
}

void Operands::write(
    Image& image, const Piece& piece, std::uint64_t iteration, int from, int to) const {
  if (piece.bytes == 0) return;
  std::vector<unsigned char> data(piece.bytes);
  fill(data.data(), data.size(), {iteration, from, receiver_of(call_, to)});
  const std::size_t each = gaps_ ? element(piece.bytes) : piece.bytes;
  for (std::size_t k = 0; k < piece.bytes; k += each) {
    const std::size_t at = piece.at + (gaps_ ? 3 * k + each : k);
    std::memcpy(image.data() + at, data.data() + k, each);
  }
}

void Operands::prepare(std::uint64_t iteration) {
  const Operation op = call_.operation;
  poison(sent_.data(), sent_.size(), iteration + 1);
  for (const Piece& piece : pieces(true)) write(sent_, piece, iteration, rank_, piece.peer);
  std::copy(sent_.begin(), sent_.end(), send_.data());
  poison(expected_.data(), expected_.size(), iteration);
  for (const Piece& piece : pieces(false)) {
    const bool own = op == Operation::broadcast ? rank_ == call_.root : piece.peer == rank_;
    const bool all = op == Operation::alltoall;
    const bool there = op == Operation::broadcast ? own : in_place_here() && (all || own);
    if (there) write(expected_, piece, iteration, rank_, piece.peer);
  }
  std::copy(expected_.begin(), expected_.end(), recv_.data());
  for (const Piece& piece : pieces(false)) {
    write(expected_, piece, iteration, piece.peer, rank_);
  }
}

std::string Operands::check(std::uint64_t iteration) const {
  const auto complain = [&](const std::string& what) {
    return describe(call_) + ", rank " + std::to_string(rank_) + " of " + std::to_string(ranks_) +
           ", iteration " + std::to_string(iteration) + ": " + what;
  };
  if (!intact()) return complain("a canary");
  const auto differs = [](const Image& image, const Guarded& buffer) {
    return std::mismatch(image.begin(), image.end(), buffer.data()).first - image.begin();
  };
  const auto sent = static_cast<std::size_t>(differs(sent_, send_));
  if (sent < sent_.size()) return complain("sent byte " + std::to_string(sent));
  const auto received = static_cast<std::size_t>(differs(expected_, recv_));
  if (received < expected_.size()) return complain("received byte " + std::to_string(received));
  return "";
}

} // namespace ferry::test
