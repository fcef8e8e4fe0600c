// SPDX-License-Identifier: MIT
#include "apps/ferry-tune/gpu_tuner.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace ferry::tune {
namespace {

constexpr const char* kOperations[] = {"alltoall", "allgather", "broadcast"};
constexpr std::uint64_t kLongestWords = 32768; // that there are kernels for
constexpr std::uint64_t kNever = std::uint64_t{1} << 40;
constexpr std::uint64_t kLargestBlock = std::uint64_t{64} << 20;

} // namespace

GpuTuner::GpuTuner(TableText& table, bool quick, Measure measure, Say say)
    : table_(table), quick_(quick), measure_(std::move(measure)), say_(std::move(say)) {
  const std::uint64_t step = quick ? 8 : 2;
  for (std::uint64_t size = 512; size <= kLongestWords; size *= step) word_sizes_.push_back(size);
  sizes_ = word_sizes_;
  const std::uint64_t last = quick ? 1 << 20 : kLargestBlock;
  for (std::uint64_t size = sizes_.back() * step; size <= last; size *= step) {
    sizes_.push_back(size);
  }
}

TableText GpuTuner::with(std::uint64_t words_to, std::uint64_t engines_from) const {
  TableText table = table_;
  for (const char* operation : kOperations) {
    table.set_value(fmt::format("amd_{}_words_to", operation), words_to);
    table.set_value(fmt::format("amd_{}_engines_from", operation), engines_from);
  }
  return table;
}

// Three jobs, each with all operations and sizes.
void GpuTuner::repeat(std::map<std::string, Trials>& all) const {
  const Times words = measure_(with(kLongestWords, kNever), word_sizes_, Way::kernels);
  const Times copies = measure_(with(0, kNever), sizes_, Way::kernels);
  const Times engines = measure_(with(0, 0), sizes_, Way::engines);
  for (const char* operation : kOperations) {
    const std::vector<double>& short_ones = words.at(operation);
    std::vector<double> kernels = copies.at(operation);
    const std::span<const double> wide(kernels.data(), word_sizes_.size());
    const std::size_t to = best_crossover(short_ones, wide);
    all[operation].words_to.push_back(
        {to == 0 ? 0 : word_sizes_[to - 1], time_with(short_ones, wide, to)});
    std::copy_n(short_ones.begin(), to, kernels.begin());
    const std::vector<double>& others = engines.at(operation);
    const std::size_t from = best_crossover(kernels, others);
    all[operation].engines_from.push_back(
        {from == sizes_.size() ? kNever : sizes_[from], time_with(kernels, others, from)});
  }
}

void GpuTuner::keep(const std::string& entry, const std::vector<Trial>& trials) {
  const auto found = agree(trials);
  if (found) {
    ++measured_;
    table_.set(entry, *found);
    say_(fmt::format("{}: {}, spread {} %", entry, found->value, found->spread));
    return;
  }
  ++kept_;
  say_(fmt::format(
      "{}: too noisy, the repetitions do not agree; it stays {}", entry, table_.value(entry)));
}

void GpuTuner::run() {
  std::map<std::string, Trials> all;
  for (int i = 0; i < (quick_ ? 2 : 4); ++i) repeat(all);
  for (const char* operation : kOperations) {
    keep(fmt::format("amd_{}_words_to", operation), all[operation].words_to);
    keep(fmt::format("amd_{}_engines_from", operation), all[operation].engines_from);
  }
}

} // namespace ferry::tune
