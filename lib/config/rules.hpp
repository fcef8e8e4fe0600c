// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "lib/config/config.hpp"

// What config.def may demand of a value. A rule reads a text into a value or nothing, says what it
// allows (a phrase behind "use "), and writes a value the way it is read.
namespace ferry::core {

// One word for each enumerator, in their order from 0.
template <class Enum, std::size_t N>
struct Words {
  std::array<std::string_view, N> names;

  [[nodiscard]] std::optional<Enum> read(std::string_view text) const {
    for (std::size_t i = 0; i < N; ++i) {
      if (names[i] == text) return static_cast<Enum>(i);
    }
    return std::nullopt;
  }
  [[nodiscard]] std::string allowed() const {
    return fmt::format("one of: {}", fmt::join(names, ", "));
  }
  [[nodiscard]] std::string write(Enum value) const {
    return std::string{names.at(static_cast<std::size_t>(value))};
  }
};

template <class Enum, class... Names>
constexpr Words<Enum, sizeof...(Names)> words(Names... names) {
  return {{std::string_view{names}...}};
}

// The whole text as a number in decimal: no blanks, no plus sign, nothing behind it, no overflow.
template <class T>
std::optional<T> read_decimal(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

struct PlainUnit {
  static constexpr std::string_view kPhrase = "an integer from {} to {}";
  static std::optional<int> read(std::string_view text) { return read_decimal<int>(text); }
  static std::string write(int value) { return fmt::format("{}", value); }
};

struct SecondsUnit {
  static constexpr std::string_view kPhrase = "seconds from {} to {}";
  static std::optional<double> read(std::string_view text) { return read_decimal<double>(text); }
  static std::string write(double value) { return fmt::format("{}", value); }
};

// A count of bytes with an optional suffix K, M, G or T (powers of 1024, either case).
template <std::integral T>
struct BytesUnit {
  static constexpr std::string_view kPhrase = "bytes from {} to {}";
  static constexpr std::string_view kSuffixes = "KMGT";

  static std::optional<T> read(std::string_view text) {
    const std::size_t suffix = suffix_of(text);
    if (suffix != 0) text.remove_suffix(1);
    const auto count = read_decimal<T>(text);
    const T scale = static_cast<T>(T{1} << (10 * suffix));
    if (!count || *count < 0 || *count > std::numeric_limits<T>::max() / scale) return std::nullopt;
    return static_cast<T>(*count * scale);
  }

  static std::string write(T value) {
    std::size_t suffix = 0;
    for (; suffix < kSuffixes.size() && value != 0 && value % 1024 == 0; ++suffix) value /= 1024;
    return suffix == 0 ? fmt::format("{}", value)
                       : fmt::format("{}{}", value, kSuffixes[suffix - 1]);
  }

 private:
  // 1 for K ... 4 for T, 0 for none.
  static std::size_t suffix_of(std::string_view text) {
    if (text.empty()) return 0;
    const char last = text.back();
    const char upper = last >= 'a' && last <= 'z' ? static_cast<char>(last - 'a' + 'A') : last;
    const std::size_t at = kSuffixes.find(upper);
    return at == std::string_view::npos ? 0 : at + 1;
  }
};

// A number from min to max, or one word more that stands for a value of its own.
template <class T, class Unit>
struct Range {
  T min;
  T max;
  std::string_view word = {};
  T word_value = {};

  [[nodiscard]] constexpr Range or_word(std::string_view name, T value) const {
    return {min, max, name, value};
  }
  [[nodiscard]] std::optional<T> read(std::string_view text) const {
    if (!word.empty() && text == word) return word_value;
    const std::optional<T> value = Unit::read(text);
    // Written so that a NaN is outside.
    return value && *value >= min && *value <= max ? value : std::nullopt;
  }
  [[nodiscard]] std::string allowed() const {
    const std::string range = fmt::format(Unit::kPhrase, Unit::write(min), Unit::write(max));
    return word.empty() ? range : fmt::format("{} or {}", word, range);
  }
  [[nodiscard]] std::string write(T value) const {
    return !word.empty() && value == word_value ? std::string{word} : Unit::write(value);
  }
};

constexpr Range<int, PlainUnit> integers(int min, int max) {
  return {min, max};
}

constexpr Range<double, SecondsUnit> seconds(double min, double max) {
  return {min, max};
}

template <class T>
constexpr Range<T, BytesUnit<T>> bytes(std::uint64_t min, std::uint64_t max) {
  return {static_cast<T>(min), static_cast<T>(max)};
}

// The name of a file, or auto, which is read as the empty text.
struct Paths {
  const char* choices = "auto";

  // `choices`: the words that mean something other than a file, for people.
  [[nodiscard]] constexpr Paths with(const char* words) const { return {words}; }
  static std::optional<PathText> read(std::string_view text) {
    PathText path;
    if (text.empty() || text.size() >= sizeof path.text) return std::nullopt;
    for (const char c : text) {
      if (c < ' ' || c > '~') return std::nullopt;
    }
    if (text != "auto") text.copy(path.text, text.size());
    return path;
  }
  [[nodiscard]] std::string allowed() const {
    return std::string(choices) + " or a path of at most 255 characters";
  }
  static std::string write(const PathText& path) { return path.text[0] == 0 ? "auto" : path.text; }
};

constexpr Paths paths() {
  return {};
}

// real, or an order with a number of nodes.
struct NodesRule {
  int most;

  [[nodiscard]] std::optional<NodeChoice> read(std::string_view text) const {
    if (text == "real") return NodeChoice{};
    for (const auto& [name, order] : kOrders) {
      if (text.size() <= name.size() || text.substr(0, name.size()) != name) continue;
      const auto nodes = read_decimal<int>(text.substr(name.size()));
      if (nodes && *nodes >= 1 && *nodes <= most) return NodeChoice{order, *nodes};
    }
    return std::nullopt;
  }
  [[nodiscard]] std::string allowed() const {
    return fmt::format("real, block:N or scatter:N with N from 1 to {}", most);
  }
  [[nodiscard]] std::string write(const NodeChoice& value) const {
    for (const auto& [name, order] : kOrders) {
      if (value.order == order) return fmt::format("{}{}", name, value.nodes);
    }
    return "real";
  }

 private:
  static constexpr std::pair<std::string_view, NodeOrder> kOrders[] = {
      {"block:", NodeOrder::block}, {"scatter:", NodeOrder::scatter}};
};

constexpr NodesRule pretended_nodes(int most) {
  return {most};
}

} // namespace ferry::core
