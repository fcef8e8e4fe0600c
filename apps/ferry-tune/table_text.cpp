// SPDX-License-Identifier: MIT
#include "apps/ferry-tune/table_text.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

namespace ferry::tune {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kLargestSpread = 1000;

// Compact, names sorted: what the checksum is made of.
std::string canonical(const Json& content) {
  nlohmann::json sorted = content;
  sorted.erase("checksum");
  return sorted.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string checksum(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return fmt::format("fnv1a64:{:016x}", hash);
}

} // namespace

TableText::TableText(const std::string& text) {
  try {
    content_ = Json::parse(text);
    for (const char* name : {"format", "date", "machine", "versions", "entries"}) {
      static_cast<void>(content_.at(name));
    }
  } catch (const Json::exception& error) {
    throw std::runtime_error(fmt::format("this is no table of Ferry: {}", error.what()));
  }
}

std::uint64_t TableText::value(const std::string& entry) const {
  return content_.at("entries").at(entry).at("value").get<std::uint64_t>();
}

void TableText::set(const std::string& entry, const Finding& found) {
  Json& line = content_.at("entries").at(entry);
  line["value"] = found.value;
  line["spread"] = std::min(found.spread, kLargestSpread);
  line["from"] = "measured";
}

void TableText::set_value(const std::string& entry, std::uint64_t value) {
  content_.at("entries").at(entry)["value"] = value;
}

void TableText::set_machine(const std::string& cpu, std::uint64_t cores) {
  content_["machine"]["cpu"] = cpu;
  content_["machine"]["cores"] = cores;
}

void TableText::set_gpu(const std::string& gpu) {
  content_["machine"]["gpu"] = gpu;
}

void TableText::set_date(const std::string& date) {
  content_["date"] = date;
}

void TableText::set_versions(const std::string& ferry, const std::string& mpi) {
  content_["versions"] = {{"ferry", ferry}, {"mpi", mpi}};
}

std::string TableText::write() const {
  const auto dump = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string text = "{\n";
  for (const char* name : {"format", "date", "machine", "versions"}) {
    text += fmt::format("  \"{}\": {},\n", name, dump(content_[name]));
  }
  text +=
      fmt::format("  \"checksum\": \"{}\",\n  \"entries\": {{\n", checksum(canonical(content_)));
  std::vector<std::string> lines;
  for (const auto& [name, entry] : content_["entries"].items()) {
    lines.push_back(fmt::format("    \"{}\": {}", name, dump(entry)));
  }
  return text + fmt::format("{}\n  }}\n}}\n", fmt::join(lines, ",\n"));
}

} // namespace ferry::tune
