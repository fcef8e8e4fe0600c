// SPDX-License-Identifier: MIT
#include "lib/config/config.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "lib/base/error.hpp"
#include "lib/config/rules.hpp"

namespace ferry::core {
namespace {

// A wrong value may be anything: what reaches the error text is short and printable.
std::string printable(std::string_view value) {
  constexpr std::size_t kLongest = 64;
  std::string text{value.substr(0, kLongest)};
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return value.size() > kLongest ? text + "..." : text;
}

template <class T, class Rule>
void read_variable(const VariableGetter& get, const char* name, const Rule& rule, T& field) {
  const char* value = get(name);
  if (value == nullptr) return;
  const auto parsed = rule.read(value);
  if (!parsed) {
    throw Failure(
        ErrorKind::configuration, fmt::format("{}={} is not allowed", name, printable(value)),
        "use " + rule.allowed());
  }
  field = *parsed;
}

struct Row {
  std::string name;
  std::string value;
  std::string initial;
  std::string allowed;
  std::string meaning;
};

std::vector<Row> rows_of(const Config& given) {
  const Config initial;
  std::vector<Row> rows;
#define FERRY_VARIABLE(type, field, name, default_value, rule, meaning) \
  rows.push_back(                                                       \
      {name, (rule).write(given.field), (rule).write(initial.field), (rule).allowed(), meaning});
#include "lib/config/config.def"
  return rows;
}

std::string as_text(const std::vector<Row>& rows) {
  constexpr const char* kLine = "{:<23} {:<8} {:<8} {}\n";
  std::string text = fmt::format(kLine, "name", "value", "default", "meaning");
  for (const Row& row : rows) {
    text += fmt::format(
        kLine, row.name, row.value, row.initial, fmt::format("{} [{}]", row.meaning, row.allowed));
  }
  return text;
}

// Names, values and texts are ours and printable, so quotes and backslashes are all there is.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string as_json(const std::vector<Row>& rows) {
  std::string text = "[";
  for (const Row& row : rows) {
    text += fmt::format(
        "{}\n  {{\"name\": {}, \"value\": {}, \"default\": {}, \"allowed\": {}, \"meaning\": {}}}",
        text.size() > 1 ? "," : "", quoted(row.name), quoted(row.value), quoted(row.initial),
        quoted(row.allowed), quoted(row.meaning));
  }
  return text + "\n]\n";
}

std::string as_markdown(const std::vector<Row>& rows) {
  std::string text =
      "# Environment\n"
      "\n"
      "Generated from `lib/config/config.def` by `scripts/update-docs`.\n"
      "\n"
      "Each process reads these variables once, at the first use of Ferry; later changes have no\n"
      "effect. A missing variable means its default. A wrong value, also an empty one, is an "
      "error\n"
      "that names the variable, the value and what is allowed. `ferry-info --env` shows the "
      "values\n"
      "in effect. Give all ranks of a job the same values.\n"
      "\n"
      "| name | allowed | default | meaning |\n"
      "|---|---|---|---|\n";
  for (const Row& row : rows) {
    text +=
        fmt::format("| `{}` | {} | `{}` | {} |\n", row.name, row.allowed, row.initial, row.meaning);
  }
  return text;
}

} // namespace

Config parse_config(const VariableGetter& get) {
  Config parsed;
#define FERRY_VARIABLE(type, field, name, initial, rule, meaning) \
  read_variable(get, name, rule, parsed.field);
#include "lib/config/config.def"
  return parsed;
}

const Config& config() {
  static const Config snapshot = parse_config([](const char* name) { return std::getenv(name); });
  return snapshot;
}

const char* differing_variable(const Config& a, const Config& b) {
#define FERRY_VARIABLE(type, field, name, initial, rule, meaning) \
  if (a.field != b.field) return name;
#include "lib/config/config.def"
  return nullptr;
}

std::string describe_config(Format format, const Config& given) {
  const std::vector<Row> rows = rows_of(given);
  switch (format) {
    case Format::text:
      return as_text(rows);
    case Format::json:
      return as_json(rows);
    case Format::markdown:
      return as_markdown(rows);
  }
  throw Failure(
      ErrorKind::argument, "unknown format of the environment", "use text, json, markdown");
}

std::string describe_config(Format format) {
  return describe_config(format, format == Format::markdown ? Config{} : config());
}

} // namespace ferry::core
