// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/buffers.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "apps/ferry-bench/memory.hpp"

namespace ferry::bench {
namespace {

constexpr std::align_val_t kPage{4096};
constexpr Block kFrontCanary{0xca11ab1e, 0, 1, 2};
constexpr Block kBackCanary{0xca11ab1e, 0, 2, 1};

// Every rank gets a block of its own from a sender.
bool is_personal(ferry_operation operation) {
  return operation == FERRY_ALLTOALL || operation == FERRY_ALLTOALLV || operation == FERRY_SCATTER;
}

int count_send_blocks(const Options& options, int rank, int ranks) {
  const ferry_operation operation = options.operation;
  if (options.in_place || operation == FERRY_BCAST || operation == FERRY_BARRIER) return 0;
  if (operation == FERRY_SCATTER) return rank == options.root ? ranks : 0;
  return is_personal(operation) ? ranks : 1;
}

int count_recv_blocks(const Options& options, int rank, int ranks) {
  switch (options.operation) {
    case FERRY_BCAST:
    case FERRY_SCATTER:
    case FERRY_ALLREDUCE:
      return 1;
    case FERRY_BARRIER:
      return 0;
    case FERRY_GATHER:
      return rank == options.root ? ranks : 0;
    default:
      return ranks;
  }
}

std::size_t largest(const Options& options) {
  return static_cast<std::size_t>(*std::max_element(options.sizes.begin(), options.sizes.end()));
}

std::size_t capacity(const Options& options, int blocks) {
  return largest(options) * static_cast<std::size_t>(blocks);
}

} // namespace

void GuardedBuffer::Free::operator()(std::byte* memory) const {
  if (shared) {
    free_shared(memory);
  } else {
    ::operator delete(memory, kPage);
  }
}

GuardedBuffer::GuardedBuffer(std::size_t size, bool shared, std::size_t offset) {
  const std::size_t bytes = size + offset + 2 * kGuard;
  memory_ = {
      shared ? allocate_shared(bytes) : static_cast<std::byte*>(::operator new(bytes, kPage)),
      Free{shared}};
  base_ = memory_.get() + offset;
}

void GuardedBuffer::resize(std::size_t size) {
  size_ = size;
  write_data({base_, kGuard}, kFrontCanary);
  write_data({base_ + kGuard + size_, kGuard}, kBackCanary);
}

std::uint64_t GuardedBuffer::count_damage() const {
  return bench::count_wrong({base_, kGuard}, kFrontCanary) +
         bench::count_wrong({base_ + kGuard + size_, kGuard}, kBackCanary);
}

Buffers::Buffers(const Options& options, int rank, int ranks)
    : options_(options),
      rank_(rank),
      ranks_(ranks),
      recv_blocks_(count_recv_blocks(options, rank, ranks)),
      send_blocks_(count_send_blocks(options, rank, ranks)),
      send_(capacity(options, send_blocks_), options.shared, options.offset),
      recv_(capacity(options, recv_blocks_), options.shared, options.offset),
      source_(options.limit && send_blocks_ == 0 ? largest(options) : 0) {}

void Buffers::resize(std::uint64_t block_bytes) {
  block_bytes_ = block_bytes;
  send_.resize(at(send_blocks_));
  recv_.resize(at(recv_blocks_));
  counts_.assign(static_cast<std::size_t>(ranks_), static_cast<MPI_Count>(block_bytes));
  displs_.clear();
  for (int i = 0; i < ranks_; ++i) displs_.push_back(static_cast<MPI_Aint>(at(i)));
}

const void* Buffers::send() noexcept {
  return send_blocks_ == 0 ? MPI_IN_PLACE : send_.bytes().data();
}

void Buffers::copy_bare() {
  const auto bytes = static_cast<std::size_t>(block_bytes_);
  for (int i = 0; i < recv_blocks_; ++i) {
    const bool stays = options_.operation == FERRY_BCAST ? rank_ == options_.root
                                                         : options_.in_place && i == rank_;
    if (stays) continue;
    const std::byte* from =
        send_blocks_ == 0 ? source_.data() : send_.bytes().data() + at(i % send_blocks_);
    std::memcpy(recv_.bytes().data() + at(i), from, bytes);
  }
}

Block Buffers::incoming(std::uint64_t iteration, int index) const {
  const bool from_root = options_.operation == FERRY_BCAST || options_.operation == FERRY_SCATTER;
  return {
      options_.seed, iteration, from_root ? options_.root : index,
      is_personal(options_.operation) ? rank_ : kEveryone};
}

Block Buffers::outgoing(std::uint64_t iteration, int index) const {
  return {options_.seed, iteration, rank_, is_personal(options_.operation) ? index : kEveryone};
}

bool Buffers::is_source(int index) const {
  if (options_.operation == FERRY_BCAST) return rank_ == options_.root;
  return options_.in_place && (options_.operation == FERRY_ALLTOALL || index == rank_);
}

void Buffers::prepare(std::uint64_t iteration) {
  const auto bytes = static_cast<std::size_t>(block_bytes_);
  for (int i = 0; i < send_blocks_; ++i) {
    write_data(send_.bytes().subspan(at(i), bytes), outgoing(iteration, i));
  }
  for (int i = 0; i < recv_blocks_; ++i) {
    const auto block = recv_.bytes().subspan(at(i), bytes);
    if (is_source(i)) {
      write_data(block, outgoing(iteration, i));
    } else {
      write_poison(block, incoming(iteration, i));
    }
  }
}

std::uint64_t Buffers::count_wrong(std::uint64_t iteration) const {
  const auto bytes = static_cast<std::size_t>(block_bytes_);
  std::uint64_t wrong = send_.count_damage() + recv_.count_damage();
  for (int i = 0; i < send_blocks_; ++i) {
    wrong += bench::count_wrong(send_.bytes().subspan(at(i), bytes), outgoing(iteration, i));
  }
  if (options_.operation == FERRY_ALLREDUCE) return wrong + count_wrong_sums(iteration);
  for (int i = 0; i < recv_blocks_; ++i) {
    wrong += bench::count_wrong(recv_.bytes().subspan(at(i), bytes), incoming(iteration, i));
  }
  return wrong;
}

// Sums of 64-bit numbers that wrap around are the same in any order.
std::uint64_t Buffers::count_wrong_sums(std::uint64_t iteration) const {
  const auto words = static_cast<std::size_t>(block_bytes_) / sizeof(std::uint64_t);
  std::vector<std::uint64_t> operand(words);
  std::vector<std::uint64_t> sums(words);
  for (int rank = 0; rank < ranks_; ++rank) {
    write_data(
        std::as_writable_bytes(std::span(operand)), {options_.seed, iteration, rank, kEveryone});
    for (std::size_t i = 0; i < words; ++i) sums[i] += operand[i];
  }
  const auto expected = std::as_bytes(std::span(sums));
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    wrong += recv_.bytes()[i] == expected[i] ? 0 : 1;
  }
  return wrong;
}

} // namespace ferry::bench
