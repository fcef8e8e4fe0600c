// SPDX-License-Identifier: MIT
// Table files: reading, with the line of each fault, and writing. The format is in doc/tuning.md.
#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "collectives/table.hpp"
#include "lib/base/error.hpp"

namespace ferry::core {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kFormat = 1;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr const char* kRemedy = "let ferry-tune write it again, or set FERRY_TABLE=builtin";

// Counts the lines that the JSON parser has taken in, so that a key is known by its line.
class CountingIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, int* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_++ == '\n') ++*line_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  int* line_;
};

// FNV-1a over what the file says without its checksum: compact JSON with sorted names.
std::string checksum_of(Json content) {
  content.erase("checksum");
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : content.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return fmt::format("fnv1a64:{:016x}", hash);
}

class Reader {
 public:
  Reader(const std::string& text, const std::string& name) : name_(name) { parse(text); }
  TableRecord read();

 private:
  [[noreturn]] void fail(const std::string& path, const std::string& fault) const {
    const auto found = lines_.find(path);
    throw_at(found == lines_.end() ? 1 : found->second, fault);
  }
  [[noreturn]] void throw_at(int line, const std::string& fault) const {
    throw Failure(ErrorKind::configuration, fmt::format("{}:{}: {}", name_, line, fault), kRemedy);
  }
  void parse(const std::string& text);
  void note_key(int depth, const std::string& key, int line);
  // The names below `path` must be these.
  void require_names(const std::string& path, const std::vector<std::string>& names) const;
  const Json& at(const std::string& path) const { return content_.at(pointer(path)); }
  static Json::json_pointer pointer(const std::string& path) {
    return Json::json_pointer(path.empty() ? "" : "/" + path);
  }
  std::string text(const std::string& path) const;
  std::uint64_t number(const std::string& path, std::uint64_t min, std::uint64_t max) const;
  void read_entry(const TableEntry& entry, TableRecord& record) const;

  const std::string& name_;
  Json content_;
  std::map<std::string, int> lines_; // "entries/slot_bytes/value"
  std::vector<std::string> open_; // names on the way to where the parser is
  std::optional<std::string> twice_;
};

void Reader::note_key(int depth, const std::string& key, int line) {
  open_.resize(static_cast<std::size_t>(std::max(depth, 1)) - 1);
  open_.push_back(key);
  const std::string path = fmt::format("{}", fmt::join(open_, "/"));
  if (!lines_.emplace(path, line).second && !twice_) {
    twice_ = path;
    lines_[path] = line;
  }
}

void Reader::parse(const std::string& text) {
  int line = 1;
  const CountingIterator begin(text.data(), &line);
  const CountingIterator end(text.data() + text.size(), &line);
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key) note_key(depth, parsed.get<std::string>(), line);
    return true;
  };
  try {
    content_ = Json::parse(begin, end, watch);
  } catch (const Json::exception& error) { // also of numbers beyond all types
    const std::string what = error.what();
    const auto colon = what.find(": ");
    throw_at(
        line,
        fmt::format("this is no JSON: {}", colon == what.npos ? what : what.substr(colon + 2)));
  }
  if (!content_.is_object()) throw_at(1, "this is no table of ferry-tune");
  if (twice_) fail(*twice_, fmt::format("{} stands here twice", *twice_));
}

void Reader::require_names(const std::string& path, const std::vector<std::string>& names) const {
  const Json& object = at(path);
  if (!object.is_object()) fail(path, fmt::format("{} must be an object", path));
  const std::string prefix = path.empty() ? "" : path + "/";
  for (const auto& [key, value] : object.items()) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    fail(prefix + key, fmt::format("{} is unknown", prefix + key));
  }
  for (const std::string& name : names) {
    if (!object.contains(name)) fail(path, fmt::format("{} is missing", prefix + name));
  }
}

std::string Reader::text(const std::string& path) const {
  const Json& value = at(path);
  if (!value.is_string()) fail(path, fmt::format("{} must be a text", path));
  return value.get<std::string>();
}

std::uint64_t Reader::number(const std::string& path, std::uint64_t min, std::uint64_t max) const {
  const Json& value = at(path);
  if (!value.is_number_unsigned()) {
    fail(path, fmt::format("{} must be a whole number of 0 or more", path));
  }
  const auto number = value.get<std::uint64_t>();
  if (number < min || number > max) {
    fail(path, fmt::format("{} is {}, allowed is {} to {}", path, number, min, max));
  }
  return number;
}

void Reader::read_entry(const TableEntry& entry, TableRecord& record) const {
  const std::string path = std::string("entries/") + entry.name;
  require_names(path, {"value", "spread", "unit", "from"});
  record.values.*entry.field = number(path + "/value", entry.min, entry.max);
  record.spread.*entry.field = number(path + "/spread", 0, 1000);
  if (text(path + "/unit") != entry.unit) {
    fail(path + "/unit", fmt::format("the unit of {} is {}", entry.name, entry.unit));
  }
  const std::string from = text(path + "/from");
  if (from != "measured" && from != "built-in") {
    fail(path + "/from", fmt::format("{}/from is measured or built-in", path));
  }
  record.measured.*entry.field = from == "measured" ? 1 : 0;
}

TableRecord Reader::read() {
  if (content_.contains("format")) {
    const std::uint64_t format = number("format", 0, UINT64_MAX);
    if (format != kFormat) {
      fail("format", fmt::format("the format is {}, this Ferry reads {}", format, kFormat));
    }
  }
  require_names("", {"format", "checksum", "date", "machine", "versions", "entries"});
  require_names("machine", {"cpu", "cores", "gpu"});
  require_names("versions", {"ferry", "mpi"});
  TableRecord record;
  record.name = name_;
  record.date = text("date");
  record.cpu = text("machine/cpu");
  record.cores = number("machine/cores", 1, 1 << 20);
  record.gpu = text("machine/gpu");
  record.ferry = text("versions/ferry");
  record.mpi = text("versions/mpi");
  std::vector<std::string> names;
  for (const TableEntry& entry : table_entries()) names.emplace_back(entry.name);
  require_names("entries", names);
  for (const TableEntry& entry : table_entries()) read_entry(entry, record);
  const std::string due = checksum_of(content_);
  if (text("checksum") != due) {
    fail(
        "checksum",
        fmt::format("the checksum is {}, that of the content {}", text("checksum"), due));
  }
  return record;
}

Json entry_content(const TableEntry& entry, const TableRecord& record) {
  const bool measured = record.measured.*entry.field != 0;
  return {
      {"value", record.values.*entry.field},
      {"spread", record.spread.*entry.field},
      {"unit", entry.unit},
      {"from", measured ? "measured" : "built-in"}};
}

} // namespace

TableRecord parse_table(const std::string& text, const std::string& name) {
  return Reader(text, name).read();
}

TableRecord read_table(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes + 1, 0);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad() || (file.fail() && !file.eof())) {
    throw Failure(
        ErrorKind::configuration,
        fmt::format("the table {} cannot be read: {}", path, std::strerror(errno)), kRemedy);
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostBytes) {
    throw Failure(
        ErrorKind::configuration, fmt::format("the table {} has more than 1 MiB", path), kRemedy);
  }
  return parse_table(text, path);
}

std::string write_table(const TableRecord& record) {
  Json content = {
      {"format", kFormat},
      {"date", record.date},
      {"machine", {{"cpu", record.cpu}, {"cores", record.cores}, {"gpu", record.gpu}}},
      {"versions", {{"ferry", record.ferry}, {"mpi", record.mpi}}},
      {"entries", Json::object()}};
  for (const TableEntry& entry : table_entries()) {
    content["entries"][entry.name] = entry_content(entry, record);
  }
  std::string text = "{\n";
  for (const char* name : {"format", "date", "machine", "versions"}) {
    text += fmt::format("  \"{}\": {},\n", name, content[name].dump());
  }
  text += fmt::format("  \"checksum\": \"{}\",\n  \"entries\": {{\n", checksum_of(content));
  std::vector<std::string> lines;
  for (const TableEntry& entry : table_entries()) {
    lines.push_back(
        fmt::format("    \"{}\": {}", entry.name, content["entries"][entry.name].dump()));
  }
  return text + fmt::format("{}\n  }}\n}}\n", fmt::join(lines, ",\n"));
}

std::string describe_table(Format format, const TableRecord& record) {
  if (format == Format::json) return write_table(record);
  std::string text = fmt::format(
      "{}: {}, {} cores{}, {}, Ferry {}, {}\n", record.name, record.cpu, record.cores,
      record.gpu.empty() ? "" : ", " + record.gpu, record.date, record.ferry, record.mpi);
  constexpr const char* kLine = "{:<26} {:>10} {:<6} {:>6}  {:<8}  {}\n";
  text += fmt::format(kLine, "entry", "value", "unit", "spread", "from", "meaning");
  for (const TableEntry& entry : table_entries()) {
    text += fmt::format(
        kLine, entry.name, record.values.*entry.field, entry.unit,
        fmt::format("{} %", record.spread.*entry.field),
        record.measured.*entry.field != 0 ? "measured" : "built-in", entry.meaning);
  }
  return text;
}

} // namespace ferry::core
