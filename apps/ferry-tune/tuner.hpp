// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/ferry-tune/bench_job.hpp"
#include "apps/ferry-tune/copies.hpp"
#include "apps/ferry-tune/crossover.hpp"
#include "apps/ferry-tune/table_text.hpp"

namespace ferry::tune {

struct Machine {
  int cores = 1; // that this process may use
  bool attach = false; // cross-memory attach works
};

// Measures one entry after the other and puts what it found into the table. An entry whose
// repetitions do not agree, or for which no time is left, stays as it is.
class Tuner {
 public:
  using Say = std::function<void(const std::string&)>;
  Tuner(const BenchJobs& jobs, TableText& table, const Machine& machine, bool quick, Say say);

  // Throws std::runtime_error when jobs cannot run at all.
  void run();
  // How many entries run() measured, and how many stay as they were because of noise or time.
  [[nodiscard]] int measured() const noexcept { return measured_; }
  [[nodiscard]] int kept() const noexcept { return kept_; }

 private:
  using Sizes = std::vector<std::uint64_t>;
  using Measure = std::function<std::optional<Finding>()>;

  void entry(const std::string& name, const Measure& measure);
  [[nodiscard]] bool in_time() const;
  [[nodiscard]] bool is_busy() const;
  // The best times of a collective by a table and variables.
  [[nodiscard]] std::vector<double> times(
      const TableText& table, const Sizes& sizes, const std::string& form,
      const std::string& memory, int ranks = 2, bool attach = true,
      const std::string& operation = "alltoall") const;
  // Repeats `once`, and looks whether the values agree.
  [[nodiscard]] std::optional<Finding> repeat(int times, const std::function<Trial()>& once) const;
  [[nodiscard]] std::optional<Finding> copy_crossover(
      CopyWay first, CopyWay second, const Sizes& sizes, bool far) const;
  // The size up to which `below` is better than `above`, 0 for none.
  [[nodiscard]] std::optional<Finding> last_below(
      const TableText& below, const TableText& above, const Sizes& sizes, const std::string& form,
      const std::string& memory) const;

  // The size from which on `above` is better than `below`; `never`: none that was tried.
  [[nodiscard]] std::optional<Finding> first_above(
      const TableText& below, const TableText& above, const Sizes& sizes, const std::string& memory,
      const std::string& operation, std::uint64_t never) const;

  [[nodiscard]] std::optional<Finding> rep_movsb_from() const;
  [[nodiscard]] std::optional<Finding> nontemporal_from() const;
  [[nodiscard]] std::optional<Finding> slot_bytes() const;
  [[nodiscard]] std::optional<Finding> direct_bytes() const;
  [[nodiscard]] std::optional<Finding> attach_from() const;
  [[nodiscard]] std::optional<Finding> share_from() const;
  [[nodiscard]] std::optional<Finding> best_stage(
      const std::string& entry, const std::vector<std::uint64_t>& values) const;
  [[nodiscard]] std::optional<Finding> spins_crowded() const;

  const BenchJobs& jobs_;
  TableText& table_;
  Machine machine_;
  bool quick_;
  int repetitions_;
  Say say_;
  int measured_ = 0;
  int kept_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

} // namespace ferry::tune
