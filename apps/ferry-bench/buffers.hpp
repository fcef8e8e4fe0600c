// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "apps/ferry-bench/options.hpp"
#include "apps/ferry-bench/pattern.hpp"

namespace ferry::bench {

// Bytes between two canaries, `offset` bytes behind the begin of a page. One allocation serves all
// sizes.
class GuardedBuffer {
 public:
  // Throws std::runtime_error or std::bad_alloc.
  GuardedBuffer(std::size_t capacity, bool shared, std::size_t offset = 0);

  // From now on the buffer has size bytes, with fresh canaries directly before and behind.
  void resize(std::size_t size);
  [[nodiscard]] std::span<std::byte> bytes() noexcept { return {base_ + kGuard, size_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {base_ + kGuard, size_};
  }
  // Canary bytes that were written to.
  [[nodiscard]] std::uint64_t count_damage() const;

 private:
  static constexpr std::size_t kGuard = 4096;
  struct Free {
    bool shared;
    void operator()(std::byte* memory) const;
  };

  std::unique_ptr<std::byte, Free> memory_;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

// The buffers of one rank for one collective, and what must be in them before and after a call.
class Buffers {
 public:
  Buffers(const Options& options, int rank, int ranks);

  // From now on blocks have this many bytes.
  void resize(std::uint64_t block_bytes);
  // The data of this iteration to send, poison where data must arrive.
  void prepare(std::uint64_t iteration);
  // Wrong bytes after the call: received, in the send buffer, in the canaries.
  [[nodiscard]] std::uint64_t count_wrong(std::uint64_t iteration) const;

  [[nodiscard]] std::uint64_t block_bytes() const noexcept { return block_bytes_; }
  // MPI_IN_PLACE when there is no send buffer.
  [[nodiscard]] const void* send() noexcept;
  [[nodiscard]] void* recv() noexcept { return recv_.bytes().data(); }
  // Of equal blocks one behind the other.
  [[nodiscard]] const MPI_Count* counts() const noexcept { return counts_.data(); }
  [[nodiscard]] const MPI_Aint* displs() const noexcept { return displs_.data(); }
  // The bytes that this rank's share of the collective has to move at least, by one plain memcpy
  // each and without a word to others.
  void copy_bare();

 private:
  // Block index of buffer holds what index sends here, or what this rank sends to index.
  [[nodiscard]] Block incoming(std::uint64_t iteration, int index) const;
  [[nodiscard]] Block outgoing(std::uint64_t iteration, int index) const;
  [[nodiscard]] std::size_t at(int index) const {
    return static_cast<std::size_t>(index) * static_cast<std::size_t>(block_bytes_);
  }
  [[nodiscard]] bool is_source(int index) const;
  [[nodiscard]] std::uint64_t count_wrong_sums(std::uint64_t iteration) const;

  Options options_;
  int rank_;
  int ranks_;
  int recv_blocks_;
  int send_blocks_;
  std::uint64_t block_bytes_ = 0;
  std::vector<MPI_Count> counts_;
  std::vector<MPI_Aint> displs_;
  GuardedBuffer send_;
  GuardedBuffer recv_;
  std::vector<std::byte> source_; // of copy_bare(), where there is no send buffer
};

} // namespace ferry::bench
