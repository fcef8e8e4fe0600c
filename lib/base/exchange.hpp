// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace ferry::core {

// Bytes of this rank that go to, or come from, another rank in an exchange.
struct ExchangePart {
  int rank = 0;
  void* data = nullptr;
  std::size_t bytes = 0; // more than 0
};

// A sparse exchange of bytes among the ranks of a communicator, set up once and started any number
// of times. Setting up is collective and in the order of calls; after that each rank may start
// exchanges in an order of its own.
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  // Not while it is under way.
  virtual ~Exchange() = default;
  virtual void start() = 0;
  // True when what this rank sends may be overwritten and what it receives is there. Throws
  // Failure.
  [[nodiscard]] virtual bool test() = 0;
};

} // namespace ferry::core
