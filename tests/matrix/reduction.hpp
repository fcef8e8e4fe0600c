// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configuration.hpp"

namespace ferry::test {

// Sums, extremes, bits, pairs with a place, and an operation of the program in which the order of
// the ranks counts.
inline constexpr int kReductions = 7;
[[nodiscard]] std::int64_t bytes_of_reduction(int reduction);
[[nodiscard]] bool is_of_program(int reduction);

class Reduction : public Operation {
 public:
  Reduction(const Configuration& c, const Comm& comm);
  ~Reduction() override;
  void prepare(std::uint64_t iteration) override;
  [[nodiscard]] std::string problem() const override;

 private:
  [[nodiscard]] std::int64_t counted(int rank) const;
  [[nodiscard]] std::vector<unsigned char> input(int rank, std::uint64_t iteration) const;

  Configuration c_;
  int rank_;
  int size_;
  int root_;
  std::int64_t all_ = 0; // elements that each rank gives
  std::int64_t first_ = 0; // of them, the first that this rank gets, and how many
  std::int64_t own_ = 0;
  bool gets_result_ = true;
  MPI_Datatype made_type_ = MPI_DATATYPE_NULL;
  MPI_Op made_op_ = MPI_OP_NULL;
  std::vector<unsigned char> send_; // with a guard on both sides
  std::vector<unsigned char> recv_;
  std::vector<unsigned char> send_before_;
  std::vector<unsigned char> recv_before_;
  std::vector<unsigned char> result_;
};

} // namespace ferry::test
