// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/report.hpp"

#include <unistd.h>

#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ferry::bench {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(double seconds) {
  return seconds * 1e6;
}

std::string number_or_dash(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : "-";
}

Json to_object(const Options& options, int ranks, const Result& result) {
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  std::optional<double> peer_min;
  std::optional<double> peer_median;
  if (result.peer) peer_min = microseconds(result.peer->minimum);
  if (result.peer) peer_median = microseconds(result.peer->median);
  std::optional<double> limit_median;
  if (result.limit) limit_median = microseconds(result.limit->median);
  return {
      {"collective", name_of(options.operation)},
      {"form", name_of(options.form)},
      {"memory", options.shared ? "shared" : "private"},
      {"offset", options.offset},
      {"in_place", options.in_place},
      {"root", options.root},
      {"ranks", ranks},
      {"peer", result.peer ? Json("mpi") : Json(nullptr)},
      {"bytes", result.bytes},
      {"rounds", result.rounds},
      {"ferry_us_min", microseconds(result.ferry.minimum)},
      {"ferry_us_median", microseconds(result.ferry.median)},
      {"peer_us_min", optional(peer_min)},
      {"peer_us_median", optional(peer_median)},
      {"limit_us_median", optional(limit_median)},
      {"ratio", optional(ratio(result))},
      {"over_limit", optional(over_limit(result))},
      {"busbw_gbps", bus_bandwidth(options, ranks, result)},
      {"path", result.path},
      {"why", result.why},
      {"errors", optional(result.errors)},
      {"peer_errors", optional(result.peer_errors)},
  };
}

} // namespace

std::string without_own_size(const Result& result) {
  std::string text = fmt::format("{}: {}", result.path, result.why);
  const std::string own = fmt::format("{} bytes", result.bytes);
  std::size_t at = text.find(own);
  for (; at != std::string::npos; at = text.find(own, at + 1)) {
    const bool starts_here = at == 0 || std::isdigit(static_cast<unsigned char>(text[at - 1])) == 0;
    if (starts_here) text.replace(at, own.size(), "N bytes");
  }
  return text;
}

std::vector<Reason> distinct_reasons(const std::vector<Result>& results) {
  std::vector<Reason> reasons;
  for (const auto& result : results) {
    std::string text = without_own_size(result);
    if (reasons.empty() || reasons.back().text != text) {
      reasons.push_back({result.bytes, result.bytes, std::move(text)});
    }
    reasons.back().last = result.bytes;
  }
  return reasons;
}

std::optional<double> over_limit(const Result& result) {
  if (!result.limit || result.limit->median <= 0) return std::nullopt;
  return result.ferry.median / result.limit->median;
}

std::optional<double> ratio(const Result& result) {
  if (!result.peer || result.ferry.median <= 0) return std::nullopt;
  return result.peer->median / result.ferry.median;
}

double bus_bandwidth(const Options& options, int ranks, const Result& result) {
  if (result.ferry.median <= 0) return 0;
  const int blocks = options.operation == FERRY_BCAST ? 1 : ranks - 1;
  return static_cast<double>(result.bytes) * blocks / result.ferry.median / 1e9;
}

std::string to_json(const Options& options, int ranks, const std::vector<Result>& results) {
  Json all = Json::array();
  for (const auto& result : results) all.push_back(to_object(options, ranks, result));
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Table::Table(const Options& options, int ranks, std::FILE* out)
    : options_(options), ranks_(ranks), out_(out) {}

void Table::header() const {
  fmt::print(
      out_, "{}, {}, {} memory{}, {} rank{}; times in microseconds\n", name_of(options_.operation),
      name_of(options_.form), options_.shared ? "shared" : "private",
      options_.in_place ? ", in place" : "", ranks_, ranks_ == 1 ? "" : "s");
  fmt::print(
      out_, "{:>11} {:>11} {:>11} {:>11} {:>11} {:>11} {:>7} {:>8}  {:<7} {:>8}\n", "bytes",
      "Ferry min", "median", "MPI min", "median", "memcpy", "ratio", "GB/s", "path", "errors");
  std::fflush(out_);
}

void Table::row(const Result& result) const {
  std::optional<double> peer_min;
  std::optional<double> peer_median;
  if (result.peer) peer_min = microseconds(result.peer->minimum);
  if (result.peer) peer_median = microseconds(result.peer->median);
  std::optional<double> limit;
  if (result.limit) limit = microseconds(result.limit->median);
  fmt::print(
      out_, "{:>11} {:>11.2f} {:>11.2f} {:>11} {:>11} {:>11} {:>7} {:>8.3f}  {:<7} {:>8}\n",
      result.bytes, microseconds(result.ferry.minimum), microseconds(result.ferry.median),
      number_or_dash(peer_min), number_or_dash(peer_median), number_or_dash(limit),
      number_or_dash(ratio(result)), bus_bandwidth(options_, ranks_, result), result.path,
      result.errors ? std::to_string(*result.errors) : "-");
  std::fflush(out_);
}

void Table::footer(const std::vector<Result>& results) const {
  for (const Reason& reason : distinct_reasons(results)) {
    const std::string sizes = reason.first == reason.last
                                  ? fmt::format("{}", reason.first)
                                  : fmt::format("{} to {}", reason.first, reason.last);
    fmt::print(out_, "{} bytes: {}\n", sizes, reason.text);
  }
  for (const auto& result : results) {
    if (result.peer_errors.value_or(0) == 0) continue;
    fmt::print(
        out_, "note: the MPI below delivered {} wrong bytes at {} bytes (not judged)\n",
        *result.peer_errors, result.bytes);
  }
  std::fflush(out_);
}

Progress::Progress(std::size_t total) : total_(total), visible_(isatty(STDERR_FILENO) == 1) {}

void Progress::show(std::size_t index, std::uint64_t bytes) const {
  if (!visible_) return;
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const auto left = static_cast<double>(total_ - index);
  const std::string rest =
      index == 0
          ? ""
          : fmt::format(", about {:.0f} s left", elapsed / static_cast<double>(index) * left);
  fmt::print(stderr, "\r\033[Ksize {} of {}: {} bytes{}", index + 1, total_, bytes, rest);
  std::fflush(stderr);
}

void Progress::clear() const {
  if (!visible_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

} // namespace ferry::bench
