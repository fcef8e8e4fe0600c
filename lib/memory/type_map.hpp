// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/memory/layout.hpp"

namespace ferry::core {

// Builds a TypeMap from the inside out. Neighbours that touch become one piece, pieces of one size
// at one distance become one run, so that data that lie side by side in order are one single piece.
//
// What has more than kUnrolled runs stays a repetition of shorter lists where it is one at the
// outermost level (a vector of structs of any length costs a few runs); what is irregular is
// written out, 40 bytes a run, up to kMaxRuns. Beyond that a Failure is thrown.
class Pieces {
 public:
  static constexpr std::uint64_t kUnrolled = 4096;
  static constexpr std::uint64_t kMaxRuns = std::uint64_t{1} << 26;

  Pieces() = default;
  explicit Pieces(std::uint64_t bytes) { push({0, bytes, 1, 0}); }

  [[nodiscard]] bool empty() const { return runs_.empty(); }
  // One piece or none.
  [[nodiscard]] bool one_piece() const;
  void append(const Pieces& other, std::int64_t shift);
  [[nodiscard]] Pieces repeated(std::uint64_t count, std::int64_t stride) const;
  [[nodiscard]] std::shared_ptr<const TypeMap> map() &&;

 private:
  void push(Run run);
  void unroll();

  std::vector<Run> runs_;
  std::uint64_t repeats_ = 1;
  std::int64_t stride_ = 0;
};

} // namespace ferry::core
