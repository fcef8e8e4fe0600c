// SPDX-License-Identifier: MIT
#include "apps/ferry-tune/tuner.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "apps/ferry-tune/stolen.hpp"

namespace ferry::tune {
namespace {

constexpr std::chrono::seconds kTimeLimit{105}; // then what is left stays built-in
constexpr double kGaugeSeconds = 0.2;
constexpr double kBusyShare = 0.05;
constexpr int kMostRanks = 16;
constexpr std::uint64_t kNever = std::uint64_t{1} << 40;
constexpr std::uint64_t kLargestBlock = std::uint64_t{1} << 30;

std::vector<std::uint64_t> powers(std::uint64_t first, std::uint64_t last) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = first; size <= last; size *= 2) sizes.push_back(size);
  return sizes;
}

} // namespace

Tuner::Tuner(const BenchJobs& jobs, TableText& table, const Machine& machine, bool quick, Say say)
    : jobs_(jobs),
      table_(table),
      machine_(machine),
      quick_(quick),
      repetitions_(quick ? 2 : 4),
      say_(std::move(say)) {}

bool Tuner::in_time() const {
  return std::chrono::steady_clock::now() - start_ < kTimeLimit;
}

// Repetitions on a busy machine may agree on what is true of busy machines only. A quick run tries
// the program and does not care.
bool Tuner::is_busy() const {
  return !quick_ && stolen_share(kGaugeSeconds) > kBusyShare;
}

void Tuner::entry(const std::string& name, const Measure& measure) {
  std::optional<Finding> found;
  std::string reason = "no time is left";
  if (in_time()) {
    reason = "other programs take the cores";
    if (!is_busy()) {
      found = measure();
      if (is_busy()) {
        found.reset();
      } else {
        reason = in_time() ? "too noisy, the repetitions do not agree" : "no time is left";
      }
    }
  }
  if (found) {
    ++measured_;
    table_.set(name, *found);
    say_(fmt::format("{}: {}, spread {} %", name, found->value, found->spread));
    return;
  }
  ++kept_;
  say_(fmt::format("{}: {}; it stays {} (built-in)", name, reason, table_.value(name)));
}

std::optional<Finding> Tuner::repeat(int times, const std::function<Trial()>& once) const {
  std::vector<Trial> trials;
  for (int i = 0; i < times; ++i) {
    if (!in_time()) return std::nullopt;
    trials.push_back(once());
  }
  return agree(trials);
}

std::vector<double> Tuner::times(
    const TableText& table, const Sizes& sizes, const std::string& form, const std::string& memory,
    int ranks, bool attach, const std::string& operation) const {
  BenchJobs::Request request;
  request.ranks = ranks;
  request.table = table.write();
  request.arguments = {
      operation,
      "--form",
      form,
      "--memory",
      memory,
      "--sizes",
      fmt::format("{}", fmt::join(sizes, ",")),
      "--iterations",
      quick_ ? "3" : "9"};
  request.variables = {
      {"FERRY_SLOT_BYTES", "auto"},
      {"FERRY_STAGE_BYTES", "auto"},
      {"FERRY_SPIN", "auto"},
      {"FERRY_ENGINE", "inline"},
      {"FERRY", "on"},
      {"FERRY_CMA", attach ? "auto" : "off"}};
  std::vector<double> all = jobs_.run(request);
  if (all.size() != sizes.size()) throw std::runtime_error("ferry-bench measured other sizes");
  return all;
}

std::optional<Finding> Tuner::last_below(
    const TableText& below, const TableText& above, const Sizes& sizes, const std::string& form,
    const std::string& memory) const {
  return repeat(repetitions_, [&] {
    const auto first = times(below, sizes, form, memory);
    const auto second = times(above, sizes, form, memory);
    const std::size_t at = best_crossover(first, second);
    return Trial{at == 0 ? 0 : sizes[at - 1], time_with(first, second, at)};
  });
}

std::optional<Finding> Tuner::copy_crossover(
    CopyWay first, CopyWay second, const Sizes& sizes, bool far) const {
  const std::vector<std::size_t> bytes(sizes.begin(), sizes.end());
  const int rounds = quick_ ? 2 : 5;
  return repeat(repetitions_, [&] {
    std::size_t at = 0;
    double time = 0;
    // What loses once the target is read is not worth it, however quick the copy alone is.
    for (const bool read_after : {false, true}) {
      if (read_after && !far) continue;
      const auto ours = time_copies(first, bytes, read_after, rounds);
      const auto theirs = time_copies(second, bytes, read_after, rounds);
      at = std::max(at, best_crossover(ours, theirs));
      time += time_with(ours, theirs, at);
    }
    return Trial{at == sizes.size() ? kNever : sizes[at], time};
  });
}

std::optional<Finding> Tuner::rep_movsb_from() const {
  return copy_crossover(CopyWay::plain, CopyWay::rep, powers(512, 128 << 10), false);
}

std::optional<Finding> Tuner::nontemporal_from() const {
  const bool rep = table_.value("rep_movsb_from") < (1 << 20);
  return copy_crossover(
      rep ? CopyWay::rep : CopyWay::plain, CopyWay::stream,
      powers(1 << 20, quick_ ? 4 << 20 : 64 << 20), true);
}

std::optional<Finding> Tuner::first_above(
    const TableText& below, const TableText& above, const Sizes& sizes, const std::string& memory,
    const std::string& operation, std::uint64_t never) const {
  return repeat(repetitions_, [&] {
    const auto first = times(below, sizes, "blocking", memory, 2, true, operation);
    const auto second = times(above, sizes, "blocking", memory, 2, true, operation);
    const std::size_t at = best_crossover(first, second);
    const std::uint64_t value = at == 0 ? sizes[0] : at == sizes.size() ? never : sizes[at];
    return Trial{value, time_with(first, second, at)};
  });
}

// Room for slots of every size that is tried.
std::optional<Finding> Tuner::slot_bytes() const {
  TableText slots = table_;
  slots.set_value("slot_budget", 4 << 20);
  TableText rings = slots;
  slots.set_value("slot_bytes", 65536);
  rings.set_value("slot_bytes", 0);
  return last_below(slots, rings, powers(512, 65536), "blocking", "private");
}

std::optional<Finding> Tuner::direct_bytes() const {
  TableText slots = table_;
  slots.set_value("slot_budget", 4 << 20);
  slots.set_value("slot_bytes", 8192);
  TableText direct = slots;
  slots.set_value("direct_bytes", 8192);
  direct.set_value("direct_bytes", 0);
  return last_below(slots, direct, powers(16, 8192), "persistent", "shared");
}

std::optional<Finding> Tuner::attach_from() const {
  TableText staged = table_;
  staged.set_value("slot_bytes", 0);
  TableText attached = staged;
  staged.set_value("attach_from", kLargestBlock);
  attached.set_value("attach_from", 0);
  return first_above(staged, attached, powers(1024, 2 << 20), "private", "alltoall", kLargestBlock);
}

std::optional<Finding> Tuner::share_from() const {
  TableText readers = table_;
  readers.set_value("share_from", 0);
  TableText shared = table_;
  shared.set_value("share_from", 1);
  const char* memory = machine_.attach ? "private" : "shared";
  return first_above(readers, shared, powers(8192, 2 << 20), memory, "bcast", 0);
}

std::optional<Finding> Tuner::best_stage(
    const std::string& name, const std::vector<std::uint64_t>& values) const {
  const Sizes sizes = quick_ ? Sizes{1 << 20} : Sizes{512 << 10, 1 << 20, 4 << 20};
  return repeat(std::min(repetitions_, 3), [&] {
    std::vector<double> costs;
    for (const std::uint64_t value : values) {
      TableText trial = table_;
      trial.set_value("slot_bytes", 0);
      trial.set_value(name, value);
      costs.push_back(geometric_mean(times(trial, sizes, "blocking", "private", 2, false)));
    }
    return Trial{values[best_choice(costs)], costs[best_choice(costs)]};
  });
}

std::optional<Finding> Tuner::spins_crowded() const {
  const int ranks = std::min(2 * machine_.cores, kMostRanks);
  const std::vector<std::uint64_t> values = {10, 25, 50, 100, 400};
  return repeat(std::min(repetitions_, 3), [&] {
    std::vector<double> costs;
    for (const std::uint64_t value : values) {
      TableText trial = table_;
      trial.set_value("spins_crowded", value);
      costs.push_back(geometric_mean(times(trial, {8, 2048}, "blocking", "private", ranks)));
    }
    return Trial{values[best_choice(costs)], costs[best_choice(costs)]};
  });
}

void Tuner::run() {
  entry("rep_movsb_from", [&] { return rep_movsb_from(); });
  entry("nontemporal_from", [&] { return nontemporal_from(); });
  entry("slot_bytes", [&] { return slot_bytes(); });
  entry("direct_bytes", [&] { return direct_bytes(); });
  if (machine_.attach) {
    entry("attach_from", [&] { return attach_from(); });
  } else {
    say_("attach_from: cross-memory attach is not allowed here, nothing to measure");
  }
  entry("share_from", [&] { return share_from(); });
  const auto stages = quick_ ? Sizes{64 << 10, 256 << 10} : powers(32 << 10, 512 << 10);
  entry("stage_bytes", [&] { return best_stage("stage_bytes", stages); });
  entry("stage_depth", [&] { return best_stage("stage_depth", {2, 4}); });
  if (2 * machine_.cores <= kMostRanks) {
    entry("spins_crowded", [&] { return spins_crowded(); });
  } else {
    say_(fmt::format("spins_crowded: not measured with more than {} cores", kMostRanks / 2));
  }
}

} // namespace ferry::tune
