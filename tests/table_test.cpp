// SPDX-License-Identifier: MIT
#include "collectives/table.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "lib/base/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using namespace ferry::core;

// As ferry-tune writes it; written once by hand, its checksum by the recipe of doc/tuning.md.
constexpr const char* kGolden = R"({
  "format": 1,
  "date": "2026-11-30",
  "machine": {"cores":64,"cpu":"A \"quoted\" CPU","gpu":"8 x G"},
  "versions": {"ferry":"0.1.0","mpi":"MPICH 4.0.2"},
  "checksum": "fnv1a64:CHECKSUM",
  "entries": {
    "slot_bytes": {"from":"measured","spread":4,"unit":"bytes","value":2048},
    "direct_bytes": {"from":"measured","spread":5,"unit":"bytes","value":512},
    "slot_budget": {"from":"built-in","spread":0,"unit":"bytes","value":131072},
    "slot_depth": {"from":"built-in","spread":0,"unit":"calls","value":8},
    "demote_bytes": {"from":"built-in","spread":0,"unit":"bytes","value":4096},
    "demote_ahead_bytes": {"from":"built-in","spread":0,"unit":"bytes","value":256},
    "attach_from": {"from":"measured","spread":6,"unit":"bytes","value":65536},
    "share_from": {"from":"built-in","spread":0,"unit":"bytes","value":65536},
    "stage_bytes": {"from":"measured","spread":7,"unit":"bytes","value":131072},
    "stage_depth": {"from":"built-in","spread":0,"unit":"chunks","value":2},
    "stage_budget": {"from":"built-in","spread":0,"unit":"bytes","value":8388608},
    "rep_movsb_from": {"from":"measured","spread":8,"unit":"bytes","value":4096},
    "nontemporal_from": {"from":"measured","spread":9,"unit":"bytes","value":8388608},
    "spins": {"from":"built-in","spread":0,"unit":"pauses","value":20000},
    "spins_crowded": {"from":"built-in","spread":0,"unit":"pauses","value":50},
    "node_alltoall_bytes": {"from":"built-in","spread":0,"unit":"bytes","value":4096},
    "node_pairs_from": {"from":"built-in","spread":0,"unit":"bytes","value":32769},
    "node_exchange_bytes": {"from":"built-in","spread":0,"unit":"bytes","value":256},
    "node_allgather_bytes": {"from":"built-in","spread":0,"unit":"bytes","value":4096},
    "node_spread_bytes": {"from":"built-in","spread":0,"unit":"bytes","value":262144},
    "node_reduce_bytes": {"from":"built-in","spread":0,"unit":"bytes","value":8192},
    "node_chunk_bytes": {"from":"built-in","spread":0,"unit":"bytes","value":131072},
    "amd_alltoall_words_to": {"from":"built-in","spread":0,"unit":"bytes","value":32768},
    "amd_allgather_words_to": {"from":"built-in","spread":0,"unit":"bytes","value":32768},
    "amd_broadcast_words_to": {"from":"built-in","spread":0,"unit":"bytes","value":2048},
    "amd_alltoall_engines_from": {"from":"measured","spread":10,"unit":"bytes","value":4194304},
    "amd_allgather_engines_from": {"from":"built-in","spread":0,"unit":"bytes","value":65536},
    "amd_broadcast_engines_from": {"from":"built-in","spread":0,"unit":"bytes","value":262144}
  }
}
)";

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

std::string golden() {
  return replaced(kGolden, "CHECKSUM", "92220f373bd1a74f");
}

Status fault_of(const std::string& text) {
  try {
    static_cast<void>(parse_table(text, "t.json"));
  } catch (const Failure& failure) {
    return failure.status();
  }
  return {};
}

// What is said of the golden file after one change.
std::string fault_after(const std::string& what, const std::string& with) {
  const Status status = fault_of(replaced(golden(), what, with));
  CHECK(status.kind == ErrorKind::configuration);
  CHECK(status.remedy == "let ferry-tune write it again, or set FERRY_TABLE=builtin");
  return status.cause;
}

void write_file(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

Config with_table(const char* value) {
  return parse_config(
      [=](const char* name) { return std::string(name) == "FERRY_TABLE" ? value : nullptr; });
}

PlanInput input_of(std::uint64_t bytes, const std::vector<BufferFacts>& facts) {
  PlanInput input;
  input.ranks = 2;
  input.block_bytes = bytes;
  input.facts = facts;
  input.limits = {6144, 1024, 65536, 2, 32768};
  return input;
}

} // namespace

TEST_CASE("table: a file is read, every field of it") {
  const TableRecord record = parse_table(golden(), "t.json");
  CHECK(record.name == "t.json");
  CHECK(record.cpu == "A \"quoted\" CPU");
  CHECK(record.cores == 64);
  CHECK(record.gpu == "8 x G");
  CHECK(record.date == "2026-11-30");
  CHECK(record.ferry == "0.1.0");
  CHECK(record.mpi == "MPICH 4.0.2");
  CHECK(record.values.slot_bytes == 2048);
  CHECK(record.spread.slot_bytes == 4);
  CHECK(record.measured.slot_bytes == 1);
  CHECK(record.measured.slot_budget == 0);
  CHECK(record.values.nontemporal_from == 8388608);
  CHECK(record.values.spins_crowded == 50);
  CHECK(write_table(record) == golden());
}

TEST_CASE("table: what is written is read back, the built-in one too") {
  TableRecord odd;
  odd.gpu = "2 x \"G\"";
  std::uint64_t next = 1;
  for (const TableEntry& entry : table_entries()) {
    odd.values.*entry.field = entry.min + next;
    odd.spread.*entry.field = ++next;
    odd.measured.*entry.field = next % 2;
  }
  for (const TableRecord& record : {TableRecord(), odd}) {
    const TableRecord back = parse_table(write_table(record), "x");
    CHECK(back.values == record.values);
    CHECK(back.spread == record.spread);
    CHECK(back.measured == record.measured);
    CHECK(back.cpu == record.cpu);
    CHECK(back.gpu == record.gpu);
  }
}

TEST_CASE("table: built-in values are in their ranges and have a meaning") {
  for (const TableEntry& entry : table_entries()) {
    CAPTURE(entry.name);
    CHECK(Table{}.*entry.field >= entry.min);
    CHECK(Table{}.*entry.field <= entry.max);
    CHECK(std::string(entry.meaning).size() > 10);
  }
}

TEST_CASE("table: every fault names file and line") {
  CHECK(fault_after("1,", "2,") == "t.json:2: the format is 2, this Ferry reads 1");
  CHECK(
      fault_after("\"format\": 1", "\"format\": \"1\"").rfind("t.json:2: format must be", 0) == 0);
  CHECK(
      fault_after("2048", "70000") ==
      "t.json:8: entries/slot_bytes/value is 70000, allowed is 0 to 65536");
  CHECK(
      fault_after("\"value\":50}", "\"value\":1000001}") ==
      "t.json:22: entries/spins_crowded/value is 1000001, allowed is 0 to 1000000");
  CHECK(fault_after("64,", "0,") == "t.json:4: machine/cores is 0, allowed is 1 to 1048576");
  CHECK(fault_after(",\"value\":512", "") == "t.json:9: entries/direct_bytes/value is missing");
  CHECK(fault_after("  \"date\": \"2026-11-30\",\n", "") == "t.json:1: date is missing");
  CHECK(fault_after("    \"spins\": {", "    \"spin\": {") == "t.json:21: entries/spin is unknown");
  CHECK(fault_after("\"date\"", "\"day\"") == "t.json:3: day is unknown");
  CHECK(
      fault_after("\"direct_bytes\"", "\"slot_bytes\"") ==
      "t.json:9: entries/slot_bytes stands here twice");
  CHECK(
      fault_after("\"unit\":\"calls\"", "\"unit\":\"bytes\"") ==
      "t.json:11: the unit of slot_depth is calls");
  CHECK(
      fault_after("\"from\":\"measured\",\"spread\":7", "\"from\":\"me\",\"spread\":7") ==
      "t.json:16: entries/stage_bytes/from is measured or built-in");
  CHECK(
      fault_after("\"value\":2048", "\"value\":-1") ==
      "t.json:8: entries/slot_bytes/value must be a whole number of 0 or more");
  CHECK(
      fault_after("\"value\":2048", "\"value\":2048.5").find(" must be a whole") !=
      std::string::npos);
  CHECK(fault_after("\"2026-11-30\"", "20261130") == "t.json:3: date must be a text");
  CHECK(
      fault_after("{\"cores\":64,\"cpu\":\"A \\\"quoted\\\" CPU\",\"gpu\":\"8 x G\"}", "[]") ==
      "t.json:4: machine must be an object");
  CHECK(
      fault_after("},\n    \"spins\"", "}\n    \"spins\"")
          .rfind("t.json:21: this is no JSON: ", 0) == 0);
}

TEST_CASE("table: the checksum notices any other value, and layout does not count") {
  const std::string changed = fault_after("\"value\":2048", "\"value\":2049");
  CHECK(
      changed.rfind(
          "t.json:6: the checksum is fnv1a64:92220f373bd1a74f, that of the content ", 0) == 0);
  CHECK(fault_after("2026-11-30", "2026-12-01").find(":6: the checksum") != std::string::npos);
  CHECK(fault_after("fnv1a64:", "").find(":6: the checksum") != std::string::npos);
  CHECK(fault_of(replaced(golden(), "\"date\": ", "\"date\"   :\n")).ok());
}

TEST_CASE("table: what is no table at all") {
  CHECK(
      fault_after("\"value\":512}", "\"value\":3e9999}").rfind("t.json:9: this is no JSON: ", 0) ==
      0);
  CHECK(fault_of("").cause.rfind("t.json:1: this is no JSON: ", 0) == 0);
  CHECK(fault_of("[]").cause == "t.json:1: this is no table of ferry-tune");
  CHECK(fault_of("{\n}").cause == "t.json:1: format is missing");
  CHECK(fault_of(std::string("\0\xff{", 3)).kind == ErrorKind::configuration);
  CHECK(fault_of(std::string(100'000, '[')).kind == ErrorKind::configuration);
}

TEST_CASE("table: whatever is in a file, it is taken or refused with its line") {
  std::mt19937 random(1);
  int taken = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = golden();
    for (int change = 0; change <= i % 3; ++change) {
      const std::size_t at = random() % text.size();
      if (i % 2 == 0) text[at] = static_cast<char>(random() % 256);
      if (i % 2 == 1) text.erase(at, random() % 20);
    }
    const Status status = fault_of(text);
    taken += status.ok() ? 1 : 0;
    if (status.ok()) continue;
    REQUIRE(status.kind == ErrorKind::configuration);
    REQUIRE(status.cause.rfind("t.json:", 0) == 0);
  }
  CHECK(taken < 300); // what changed a blank only
}

TEST_CASE("table: a file that is not there or too large") {
  const ferry::test::TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(
      static_cast<void>(read_table(folder.path() + "/none")),
      ("the table " + folder.path() + "/none cannot be read: No such file or directory").c_str(),
      Failure);
  CHECK_THROWS_AS(static_cast<void>(read_table(folder.path())), Failure);
  write_file(folder.path() + "/large", std::string((1 << 20) + 1, ' '));
  CHECK_THROWS_WITH_AS(
      static_cast<void>(read_table(folder.path() + "/large")),
      ("the table " + folder.path() + "/large has more than 1 MiB").c_str(), Failure);
  write_file(folder.path() + "/good", golden());
  CHECK(read_table(folder.path() + "/good").values.slot_bytes == 2048);
}

TEST_CASE("table: where it is looked for") {
  const ferry::test::TemporaryFolder folder;
  const std::string xdg = folder.path() + "/xdg";
  std::map<std::string, std::string> environment = {
      {"XDG_CONFIG_HOME", xdg}, {"HOME", folder.path()}};
  const VariableGetter get = [&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
  const bool system = std::filesystem::exists("/etc/ferry/table.json");
  const std::string last = system ? "/etc/ferry/table.json" : "";
  CHECK(find_table(with_table("builtin"), get).empty());
  CHECK(find_table(with_table("/not/there"), get) == "/not/there");
  CHECK(find_table(Config{}, get) == last);
  write_file(folder.path() + "/.config/ferry/table.json", "");
  CHECK(find_table(Config{}, get) == last);
  write_file(xdg + "/ferry/table.json", "");
  CHECK(find_table(Config{}, get) == xdg + "/ferry/table.json");
  environment.erase("XDG_CONFIG_HOME");
  CHECK(find_table(Config{}, get) == folder.path() + "/.config/ferry/table.json");
  environment["HOME"] = "";
  CHECK(find_table(Config{}, get) == last);
}

TEST_CASE("table: the fingerprint differs with every value") {
  for (const TableEntry& entry : table_entries()) {
    Table other;
    other.*entry.field += 1;
    CAPTURE(entry.name);
    CHECK(fingerprint(other) != fingerprint(Table{}));
  }
}

TEST_CASE("table: explain names what decided") {
  const TableRecord record;
  const std::vector<BufferFacts> mapped(2, {true, true});
  const std::vector<BufferFacts> own(2, {false, false});
  const auto said = [&](const PlanInput& input, Path path, const Config& config = {}) {
    return decided_by(input, path, record, config);
  };
  CHECK(said(input_of(8, {}), Path::slots) == "(slot_bytes 6144, built-in table)");
  CHECK(said(input_of(2048, mapped), Path::engine) == "(direct_bytes 1024, built-in table)");
  CHECK(said(input_of(8192, mapped), Path::engine) == "(slot_bytes 6144, built-in table)");
  CHECK(said(input_of(8192, own), Path::engine) == "(attach_from 32768, built-in table)");
  // An exchange is told by its longest block.
  PlanInput exchange = input_of(0, {});
  const std::vector<PairPlan> pairs = {{0, 0, {}, {}}, {8, 8192, {}, {}}};
  exchange.pairs = pairs;
  CHECK(said(exchange, Path::engine) == "(attach_from 32768, built-in table)");
  const std::vector<PairPlan> mapped_pairs = {{8, 8192, {true, true}, {true, true}}};
  exchange.pairs = mapped_pairs;
  CHECK(said(exchange, Path::engine) == "(slot_bytes 6144, built-in table)");
  PlanInput many = input_of(8, {});
  many.limits.slot_bytes = 1008;
  CHECK(said(many, Path::slots) == "(slot_budget 122880, built-in table)");
  Config config;
  config.slot_bytes = 64;
  many.limits.slot_bytes = 64;
  CHECK(said(many, Path::slots, config) == "(FERRY_SLOT_BYTES 64)");
}
