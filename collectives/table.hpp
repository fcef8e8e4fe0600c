// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collectives/planner.hpp"
#include "lib/config/config.hpp"

namespace ferry::core {

// Sizes at which plans change, as measured on a machine. Planners take their limits from here.
// Table{} is the built-in one.
struct Table {
#define FERRY_ENTRY(field, value, spread, min, max, unit, meaning) std::uint64_t field = value;
#include "collectives/table.def"

  friend bool operator==(const Table&, const Table&) = default;
};

// What table.def says of an entry.
struct TableEntry {
  const char* name;
  std::uint64_t Table::*field;
  std::uint64_t spread;
  std::uint64_t min;
  std::uint64_t max;
  const char* unit;
  const char* meaning;
};
[[nodiscard]] std::span<const TableEntry> table_entries();

// A table with what is known about it; as it comes, the built-in one.
struct TableRecord {
  TableRecord();

  std::string name = "built-in table"; // for people; of a file its path
  std::string cpu = "Intel(R) Xeon(R) Processor";
  std::uint64_t cores = 2;
  std::string gpu; // whose entries were measured; empty: none
  std::string date = "2026-11-30";
  std::string ferry; // version that measured
  std::string mpi = "MPICH 4.0.2";
  Table values;
  Table spread; // percent
  Table measured; // 1: on that machine; 0: taken over from the built-in table
};

// The table in effect, read once: the file that FERRY_TABLE names, else the first that is there of
// $XDG_CONFIG_HOME/ferry/table.json (without the variable ~/.config), /etc/ferry/table.json, else
// the built-in one. Throws Failure(configuration) naming file and line while that file is wrong.
// Safe to call from any thread.
[[nodiscard]] const TableRecord& table_record();
[[nodiscard]] const Table& table();

// The path that table_record() reads by these variables; empty: none, the built-in one.
[[nodiscard]] std::string find_table(const Config& config, const VariableGetter& get);

// Reads the text of a table file (doc/tuning.md); name is for errors and people. Throws
// Failure(configuration) naming the line.
[[nodiscard]] TableRecord parse_table(const std::string& text, const std::string& name);
// The same of a file.
[[nodiscard]] TableRecord read_table(const std::string& path);

// A file that parse_table() takes, one entry a line.
[[nodiscard]] std::string write_table(const TableRecord& record);

// The table for people, or as a file.
[[nodiscard]] std::string describe_table(Format format, const TableRecord& record);

// Of the values alone: equal for ranks that plan alike.
[[nodiscard]] std::uint64_t fingerprint(const Table& values);

// What decided the path of a plan: "(slot_bytes 4064, built-in table)", or the variable that did.
[[nodiscard]] std::string decided_by(
    const PlanInput& input, Path path, const TableRecord& record, const Config& config);
// The same by the table and the variables in effect.
[[nodiscard]] std::string decided_by(const PlanInput& input, Path path);

} // namespace ferry::core
