// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "apps/ferry-bench/options.hpp"
#include "apps/ferry-bench/runner.hpp"

namespace ferry::bench {

// Ferry median / limit median: how much of the time no other way could save. Empty without a limit.
[[nodiscard]] std::optional<double> over_limit(const Result& result);

// Peer median / Ferry median: above 1 Ferry is quicker. Empty without a peer.
[[nodiscard]] std::optional<double> ratio(const Result& result);

// 10^9 bytes a second that a rank exchanges with others, by the median.
[[nodiscard]] double bus_bandwidth(const Options& options, int ranks, const Result& result);

// Why a run of sizes takes its path: "<path>: <why>", with "N bytes" for the size itself.
struct Reason {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::string text;
};
[[nodiscard]] std::vector<Reason> distinct_reasons(const std::vector<Result>& results);

// The results as an array of one JSON object per size.
[[nodiscard]] std::string to_json(
    const Options& options, int ranks, const std::vector<Result>& results);

// The table for people, row by row.
class Table {
 public:
  Table(const Options& options, int ranks, std::FILE* out);
  void header() const;
  void row(const Result& result) const;
  // Below the table: the reasons for the paths, and what the MPI below got wrong.
  void footer(const std::vector<Result>& results) const;

 private:
  const Options& options_;
  int ranks_;
  std::FILE* out_;
};

// One line on standard error that is overwritten: which size is measured and how long the rest may
// take. Silent when standard error is no terminal.
class Progress {
 public:
  explicit Progress(std::size_t total);
  void show(std::size_t index, std::uint64_t bytes) const;
  void clear() const;

 private:
  std::size_t total_;
  bool visible_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

} // namespace ferry::bench
