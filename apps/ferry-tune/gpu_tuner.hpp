// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/ferry-tune/table_text.hpp"

namespace ferry::tune {

// Sizes at which collectives on memory of AMD GPUs change their ways: words of kernels, copies of
// kernels, copy engines.
class GpuTuner {
 public:
  using Sizes = std::vector<std::uint64_t>;
  enum class Way { kernels, engines };
  // The best times of every operation, by size, in jobs that run by this table. Throws
  // std::runtime_error when a collective does not go the way that is wanted.
  using Times = std::map<std::string, std::vector<double>>;
  using Measure = std::function<Times(const TableText& table, const Sizes& sizes, Way way)>;
  using Say = std::function<void(const std::string&)>;

  GpuTuner(TableText& table, bool quick, Measure measure, Say say);
  void run();
  [[nodiscard]] int measured() const noexcept { return measured_; }
  [[nodiscard]] int kept() const noexcept { return kept_; }

 private:
  struct Trials {
    std::vector<Trial> words_to;
    std::vector<Trial> engines_from;
  };
  [[nodiscard]] TableText with(std::uint64_t words_to, std::uint64_t engines_from) const;
  void repeat(std::map<std::string, Trials>& all) const;
  void keep(const std::string& entry, const std::vector<Trial>& trials);

  TableText& table_;
  bool quick_;
  Measure measure_;
  Say say_;
  Sizes word_sizes_;
  Sizes sizes_;
  int measured_ = 0;
  int kept_ = 0;
};

} // namespace ferry::tune
