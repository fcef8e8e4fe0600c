// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <mpi.h>

#include "apps/ferry-bench/buffers.hpp"
#include "apps/ferry-bench/contender.hpp"
#include "apps/ferry-bench/crew.hpp"
#include "apps/ferry-bench/options.hpp"
#include "apps/ferry-bench/stopwatch.hpp"

namespace ferry::bench {

struct Result {
  std::uint64_t bytes = 0;
  int rounds = 0;
  Times ferry;
  std::optional<Times> peer;
  std::optional<Times> limit;
  std::string path;
  std::string why;
  std::optional<std::uint64_t> errors; // wrong bytes of Ferry on all ranks; empty: unchecked
  std::optional<std::uint64_t> peer_errors; // the same of the MPI below
};

// Measures one size after another on one set of buffers. All functions are collective.
class Runner {
 public:
  // Throws std::exception when there is no memory for the largest size.
  Runner(const Options& options, MPI_Comm comm, const Crew& crew);

  // Throws Error when a call fails.
  [[nodiscard]] Result measure(std::uint64_t block_bytes);

 private:
  [[nodiscard]] std::uint64_t count_wrong(const Contender& contender);
  void time(Result& result, const Contender& ferry, const std::optional<Contender>& peer);

  const Options& options_;
  MPI_Comm comm_;
  const Crew& crew_;
  Buffers buffers_;
  std::uint64_t iteration_ = 0;
};

} // namespace ferry::bench
