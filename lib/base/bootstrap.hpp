// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/exchange.hpp"

namespace ferry::core {

// The seam to whoever started the ranks: MPI, or ranks that are threads of one process in tests.
// Exchanges are collective: all ranks start the same ones in the same order, one at a time.
class Bootstrap {
 public:
  Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;
  virtual ~Bootstrap() = default;

  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;

  // Begin to gather `bytes` bytes from every rank into all[size * bytes]; both stay untouched by
  // the caller until test() has returned true.
  virtual void start_allgather(const void* mine, std::size_t bytes, void* all) = 0;
  // True when the exchange that was started last has completed.
  [[nodiscard]] virtual bool test() = 0;

  // Set up an exchange: at most one part for each peer in either direction. Collective, at a point
  // where all ranks make the same call; does not wait.
  [[nodiscard]] virtual std::unique_ptr<Exchange> prepare(
      const std::vector<ExchangePart>& sends, const std::vector<ExchangePart>& receives) = 0;

  // Give the MPI below a chance to progress (a peer may be stuck in a rendezvous with this rank).
  virtual void poke() = 0;
  // The communicator is being freed: poke() must do without it from now on. Any thread.
  virtual void detach() {}
};

} // namespace ferry::core
