// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/error.hpp"
#include "lib/memory/scratch.hpp"
#include "lib/schedule/collective.hpp"

namespace ferry::core {

// A reduction as a row of collectives that move bytes, with the arithmetic between them on the
// calling thread. Small: everyone who gets the result gathers all operands. Large: rank i gets part
// i of all operands, reduces it, and the parts are put together: 2 (n - 1) / n of the operand leave
// and enter each rank.
//
// Order of operands: a0 op (a1 op (... op a(n-1))), by rank, for every element, whatever the sizes
// and the times of arrival: results are the same from run to run. MPI_Reduce_local of the MPI below
// does the arithmetic.
class ReductionScript {
 public:
  // small_bytes: operands up to this size are gathered whole; those of a reduce_scatter only if
  // `one_stage` asks for it.
  ReductionScript(
      const CollectiveDesc& whole, int rank, int ranks, std::uint64_t small_bytes,
      bool one_stage = false);
  ~ReductionScript();
  ReductionScript(const ReductionScript&) = delete;
  ReductionScript& operator=(const ReductionScript&) = delete;

  [[nodiscard]] const CollectiveDesc& whole() const { return whole_; }
  // Is this script one for `desc`?
  [[nodiscard]] bool fits(const CollectiveDesc& desc) const;
  // The collectives, alike in number and kind on all ranks.
  [[nodiscard]] std::size_t stages() const { return stages_.size(); }
  [[nodiscard]] const CollectiveDesc& stage(std::size_t i) const { return stages_[i]; }
  // Call after each stage has completed.
  [[nodiscard]] Status finish(std::size_t stage);

 private:
  [[nodiscard]] std::uint64_t bytes_of(std::uint64_t elements) const;
  [[nodiscard]] Block bytes_block(std::uint64_t at, std::uint64_t bytes) const;
  [[nodiscard]] CollectiveDesc bytes_desc(Operation operation, const void* send, void* recv) const;
  void add_gather_all();
  void add_exchange();
  void add_collection();
  std::byte* make_operands(std::uint64_t bytes);
  Status reduce() const;

  CollectiveDesc whole_;
  int rank_;
  int ranks_;
  std::vector<std::uint64_t> first_; // element at which each rank's part begins
  std::uint64_t total_ = 0; // elements
  std::vector<CollectiveDesc> stages_;
  std::uint64_t stride_ = 0; // bytes from operand to operand
  std::uint64_t begin_ = 0; // bytes of each before those that this rank reduces
  Scratch scratch_; // operands of all ranks, one behind the other
  std::byte* part_ = nullptr; // where the own result goes after stage 0
  std::uint64_t reduced_ = 0; // elements that this rank reduces
};

} // namespace ferry::core
