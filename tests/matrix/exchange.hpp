// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "configuration.hpp"
#include "side.hpp"

namespace ferry::test {

// The collectives that move data as it is, and the barrier, which moves none.
class Exchange : public Operation {
 public:
  Exchange(const Configuration& c, const Comm& comm);
  void prepare(std::uint64_t iteration) override;
  [[nodiscard]] std::string problem() const override;
  void free_types() override;

 private:
  [[nodiscard]] std::int64_t elements(int sender, int receiver) const;
  void describe();
  void add_sent(int receiver);
  void add_received(int sender);
  void build();
  void fill_call();

  Configuration c_;
  int rank_;
  int size_;
  int root_;
  std::vector<Part> sent_;
  std::vector<Part> received_;
  std::unique_ptr<Side> send_; // null: this rank has none
  std::unique_ptr<Side> recv_;
};

} // namespace ferry::test
