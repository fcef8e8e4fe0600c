// SPDX-License-Identifier: MIT
#include "lib/memory/type_map.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/error.hpp"

namespace ferry::core {
namespace {

constexpr std::size_t kIndexedFrom = 16; // runs; a shorter list is searched from its begin

std::int64_t last_offset(const Run& run) {
  return run.offset + static_cast<std::int64_t>(run.repeats - 1) * run.stride;
}

std::int64_t end_of(std::int64_t offset, std::uint64_t bytes) {
  return offset + static_cast<std::int64_t>(bytes);
}

Run normal(Run run) {
  if (run.repeats == 1) {
    run.stride = 0;
  } else if (run.stride == static_cast<std::int64_t>(run.bytes)) {
    run = {run.offset, run.bytes * run.repeats, 1, 0};
  }
  return run;
}

// Both as one run, if they are one.
std::optional<Run> join(const Run& a, const Run& b) {
  if (a.repeats == 1 && b.repeats == 1 && end_of(a.offset, a.bytes) == b.offset) {
    return Run{a.offset, a.bytes + b.bytes, 1, 0};
  }
  if (a.bytes != b.bytes) return std::nullopt;
  std::int64_t stride = b.offset - a.offset;
  if (a.repeats > 1) {
    stride = a.stride;
  } else if (b.repeats > 1) {
    stride = b.stride;
  }
  const bool same = b.repeats == 1 || b.stride == stride;
  if (!same || b.offset != last_offset(a) + stride) return std::nullopt;
  return Run{a.offset, a.bytes, a.repeats + b.repeats, stride};
}

} // namespace

bool Pieces::one_piece() const {
  return runs_.empty() || (runs_.size() == 1 && runs_.front().repeats == 1 && repeats_ == 1);
}

void Pieces::push(Run run) {
  if (run.bytes == 0 || run.repeats == 0) return;
  run = normal(run);
  while (runs_.size() > 0) {
    Run& back = runs_.back();
    if (const auto both = join(back, run)) {
      run = *both;
      runs_.pop_back();
    } else if (
        back.repeats > 1 && run.repeats == 1 &&
        end_of(last_offset(back), back.bytes) == run.offset) {
      // The last piece of a run grows: it leaves the run.
      run = {last_offset(back), back.bytes + run.bytes, 1, 0};
      --back.repeats;
      back = normal(back);
    } else {
      break;
    }
  }
  if (runs_.size() == kMaxRuns) {
    throw Failure(
        ErrorKind::type, "a datatype has more than 67108864 pieces without order",
        "make it of fewer and longer blocks");
  }
  runs_.push_back(run);
}

void Pieces::append(const Pieces& other, std::int64_t shift) {
  if (other.empty()) return;
  if (empty() && shift == 0) {
    *this = other;
    return;
  }
  unroll();
  for (std::uint64_t i = 0; i < other.repeats_; ++i) {
    const std::int64_t from = shift + static_cast<std::int64_t>(i) * other.stride_;
    for (Run run : other.runs_) {
      run.offset += from;
      push(run);
    }
  }
}

void Pieces::unroll() {
  if (repeats_ == 1) return;
  Pieces once;
  once.runs_ = std::move(runs_);
  runs_.clear();
  const std::uint64_t count = std::exchange(repeats_, 1);
  const std::int64_t stride = std::exchange(stride_, 0);
  for (std::uint64_t i = 0; i < count; ++i) append(once, static_cast<std::int64_t>(i) * stride);
}

Pieces Pieces::repeated(std::uint64_t count, std::int64_t stride) const {
  if (count == 0 || empty()) return {};
  if (count == 1) return *this;
  Pieces result = *this;
  if (repeats_ > 1) {
    if (stride == static_cast<std::int64_t>(repeats_) * stride_) {
      result.repeats_ *= count;
      return result;
    }
    result.unroll();
  }
  const Run& first = result.runs_.front();
  const bool one_run = result.runs_.size() == 1;
  if (one_run && first.repeats == 1) {
    result.runs_.front() = normal({first.offset, first.bytes, count, stride});
  } else if (one_run && stride == static_cast<std::int64_t>(first.repeats) * first.stride) {
    result.runs_.front().repeats *= count;
  } else if (count > kUnrolled / result.runs_.size()) {
    result.repeats_ = count;
    result.stride_ = stride;
  } else {
    const Pieces once = std::exchange(result, {});
    for (std::uint64_t i = 0; i < count; ++i) {
      result.append(once, static_cast<std::int64_t>(i) * stride);
    }
  }
  return result;
}

std::shared_ptr<const TypeMap> Pieces::map() && {
  auto map = std::make_shared<TypeMap>();
  map->runs = std::move(runs_);
  map->repeats = repeats_;
  map->stride = stride_;
  if (map->runs.empty()) return map;
  map->lower = INT64_MAX;
  map->upper = INT64_MIN;
  const std::int64_t span = static_cast<std::int64_t>(repeats_ - 1) * stride_;
  std::uint64_t start = 0;
  if (map->runs.size() > kIndexedFrom) map->starts.reserve(map->runs.size());
  for (const Run& run : map->runs) {
    const std::int64_t low = std::min(run.offset, last_offset(run));
    const std::int64_t high = std::max(run.offset, last_offset(run));
    map->lower = std::min(map->lower, low + std::min<std::int64_t>(span, 0));
    map->upper = std::max(map->upper, end_of(high, run.bytes) + std::max<std::int64_t>(span, 0));
    if (map->runs.size() > kIndexedFrom) map->starts.push_back(start);
    start += run.bytes * run.repeats;
  }
  return map;
}

} // namespace ferry::core
