// SPDX-License-Identifier: MIT
#include "collectives/table.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "device/copy.hpp"

namespace ferry::core {
namespace {

constexpr auto kEntries = std::to_array<TableEntry>({
#define FERRY_ENTRY(field, value, spread, min, max, unit, meaning) \
  {#field, &Table::field, spread, min, max, unit, meaning},
#include "collectives/table.def"
});

constexpr const char* kSystemTable = "/etc/ferry/table.json";

bool is_there(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

// An empty variable counts as none, as XDG has it.
std::string user_table(const VariableGetter& get) {
  for (const auto& [variable, folder] : {std::pair{"XDG_CONFIG_HOME", ""}, {"HOME", "/.config"}}) {
    const char* value = get(variable);
    if (value != nullptr && value[0] == '/') {
      return std::string(value) + folder + "/ferry/table.json";
    }
  }
  return {};
}

TableRecord load() {
  const std::string path = find_table(config(), [](const char* name) { return std::getenv(name); });
  TableRecord record = path.empty() ? TableRecord() : read_table(path);
  // The copy routine lies below and knows no tables.
  device::set_copy_limits({record.values.rep_movsb_from, record.values.nontemporal_from});
  return record;
}

// Neither side of a transfer maps the other's buffer: it goes by attach or through stages.
bool is_private(const BufferFacts& source, const BufferFacts& target) {
  return !source.send_mapped && !target.recv_mapped;
}

bool has_private(const PlanInput& input) {
  for (const PairPlan& pair : input.pairs) {
    if (pair.send_bytes > 0 && is_private(pair.mine, pair.theirs)) return true;
    if (pair.recv_bytes > 0 && is_private(pair.theirs, pair.mine)) return true;
  }
  if (input.facts.empty() || input.in_place) return false;
  if (input.operation == Operation::broadcast) {
    return !input.facts[static_cast<std::size_t>(input.root)].send_mapped;
  }
  return std::any_of(input.facts.begin(), input.facts.end(), [&](const BufferFacts& source) {
    return std::any_of(input.facts.begin(), input.facts.end(), [&](const BufferFacts& target) {
      return is_private(source, target);
    });
  });
}

// The block that a limit is held against; of an exchange the longest that this rank has to do with.
std::uint64_t longest_block(const PlanInput& input) {
  std::uint64_t longest = input.block_bytes;
  for (const PairPlan& pair : input.pairs) {
    longest = std::max({longest, pair.send_bytes, pair.recv_bytes});
  }
  return longest;
}

} // namespace

std::span<const TableEntry> table_entries() {
  return kEntries;
}

TableRecord::TableRecord() : ferry(FERRY_VERSION_TEXT) {
  for (const TableEntry& entry : kEntries) {
    spread.*entry.field = entry.spread;
    measured.*entry.field = 0;
  }
}

std::string find_table(const Config& config, const VariableGetter& get) {
  const std::string_view given = config.table.text;
  if (given == "builtin") return {};
  if (!given.empty()) return std::string(given);
  for (const std::string& path : {user_table(get), std::string(kSystemTable)}) {
    if (!path.empty() && is_there(path)) return path;
  }
  return {};
}

const TableRecord& table_record() {
  static const TableRecord record = load();
  return record;
}

const Table& table() {
  return table_record().values;
}

std::uint64_t fingerprint(const Table& values) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const TableEntry& entry : kEntries) {
    hash = (hash ^ (values.*entry.field)) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash;
}

std::string decided_by(
    const PlanInput& input, Path path, const TableRecord& record, const Config& config) {
  const PlanLimits& limits = input.limits;
  const auto entry = [&](const char* name, std::uint64_t value) {
    return fmt::format("({} {}, {})", name, value, record.name);
  };
  const bool above_slots = longest_block(input) > limits.slot_bytes;
  if (path == Path::engine && above_slots && limits.attach_from > 0 && has_private(input)) {
    return entry("attach_from", limits.attach_from);
  }
  if (config.slot_bytes >= 0) return fmt::format("(FERRY_SLOT_BYTES {})", limits.slot_bytes);
  if (path == Path::engine && !above_slots) return entry("direct_bytes", limits.direct_bytes);
  if (limits.slot_bytes < record.values.slot_bytes) {
    return entry("slot_budget", record.values.slot_budget);
  }
  return entry("slot_bytes", limits.slot_bytes);
}

std::string decided_by(const PlanInput& input, Path path) {
  return decided_by(input, path, table_record(), config());
}

} // namespace ferry::core
