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

namespace ferry::bench {

// Seconds of one call on the slowest rank, over the rounds of one size.
struct Times {
  double minimum = 0;
  double median = 0;
};

// Of rounds that are not empty.
[[nodiscard]] Times summarize(std::vector<double> rounds);

struct Result {
  std::uint64_t bytes = 0;
  int rounds = 0;
  Times ferry;
  std::optional<Times> peer;
  std::string path;
  std::string why;
  std::optional<std::uint64_t> errors; // wrong bytes of Ferry on all ranks; empty: unchecked
  std::optional<std::uint64_t> peer_errors; // the same of the MPI below
};

// Measures one size after another on one set of buffers. All functions are collective.
class Runner {
 public:
  // Throws Error or std::bad_alloc when there is no memory for the largest size.
  Runner(const Options& options, MPI_Comm comm, const Crew& crew);

  // Throws Error when a call fails.
  [[nodiscard]] Result measure(std::uint64_t block_bytes);

 private:
  // A round of a contender: so many calls, and what they take.
  struct Pace {
    std::int64_t calls = 1;
    double seconds = 0;
  };

  [[nodiscard]] std::uint64_t count_wrong(const Contender& contender);
  [[nodiscard]] double time_round(const Contender& contender, std::int64_t calls) const;
  [[nodiscard]] Pace calibrate(const Contender& contender) const;
  [[nodiscard]] int choose_rounds(const Pace& ferry, const Pace& peer) const;
  void time(Result& result, const Contender& ferry, const std::optional<Contender>& peer) const;

  const Options& options_;
  MPI_Comm comm_;
  const Crew& crew_;
  Buffers buffers_;
  std::uint64_t iteration_ = 0;
};

} // namespace ferry::bench
