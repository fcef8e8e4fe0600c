// SPDX-License-Identifier: MIT
#include "lib/config/config.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "lib/base/error.hpp"

namespace {

#define FERRY_VARIABLE(type, field, name, ...) +1
constexpr std::size_t kVariables = 0
#include "lib/config/config.def"
    ;

using ferry::core::CmaChoice;
using ferry::core::Config;
using ferry::core::describe_config;
using ferry::core::EngineChoice;
using ferry::core::ErrorKind;
using ferry::core::Failure;
using ferry::core::Format;
using ferry::core::parse_config;
using ferry::core::SegmentChoice;
using ferry::core::Status;

using Environment = std::map<std::string, std::string>;

Config parse(const Environment& environment) {
  return parse_config([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

// The outcome of one variable with one value; kind none when the value was taken.
Status outcome(const std::string& name, const std::string& value) {
  try {
    (void)parse({{name, value}});
  } catch (const Failure& failure) {
    return failure.status();
  }
  return {};
}

bool refused(const std::string& name, const std::string& value) {
  const Status status = outcome(name, value);
  CAPTURE(name);
  CAPTURE(value);
  if (status.ok()) return false;
  CHECK(status.kind == ErrorKind::configuration);
  CHECK(status.cause.rfind(name + "=", 0) == 0);
  CHECK(status.remedy.rfind("use ", 0) == 0);
  return true;
}

nlohmann::json described(const Config& config) {
  return nlohmann::json::parse(describe_config(Format::json, config));
}

} // namespace

TEST_CASE("config: without variables every field has its default") {
  const Config config = parse({});
  CHECK(config == Config{});
  CHECK(config.enabled);
  CHECK(config.engine == EngineChoice::inline_);
  CHECK(config.engine_threads == 1);
  CHECK(config.segments == SegmentChoice::auto_);
  CHECK(config.heap_max == 0);
  CHECK(config.slot_bytes == -1);
  CHECK(config.stage_bytes == 0);
  CHECK(config.table.text[0] == 0);
  CHECK(config.max_packet_bytes == 134217728);
  CHECK(config.cma == CmaChoice::auto_);
  CHECK(config.spin == -1);
  CHECK(config.warn_after == 30.0);
  CHECK(config.timeout == 0.0);
  CHECK(config.verbose == 0);
}

TEST_CASE("config: each variable sets its own field and no other") {
  const auto only = [](const char* name, const char* value, auto&& assign) {
    Config expected;
    assign(expected);
    CAPTURE(name);
    CHECK(parse({{name, value}}) == expected);
    CHECK_FALSE(expected == Config{});
  };
  only("FERRY", "off", [](Config& c) { c.enabled = false; });
  only("FERRY_ENGINE", "threads", [](Config& c) { c.engine = EngineChoice::threads; });
  only("FERRY_ENGINE_THREADS", "64", [](Config& c) { c.engine_threads = 64; });
  only("FERRY_SEGMENTS", "memfd", [](Config& c) { c.segments = SegmentChoice::memfd; });
  only("FERRY_SEGMENTS", "shm", [](Config& c) { c.segments = SegmentChoice::shm; });
  only("FERRY_HEAP_MAX", "3G", [](Config& c) { c.heap_max = 3221225472; });
  only("FERRY_SLOT_BYTES", "0", [](Config& c) { c.slot_bytes = 0; });
  only("FERRY_STAGE_BYTES", "4096", [](Config& c) { c.stage_bytes = 4096; });
  only("FERRY_MAX_PACKET_BYTES", "64", [](Config& c) { c.max_packet_bytes = 64; });
  only("FERRY_CMA", "off", [](Config& c) { c.cma = CmaChoice::off; });
  only("FERRY_SPIN", "1000000", [](Config& c) { c.spin = 1'000'000; });
  only("FERRY_WARN_AFTER", "0.25", [](Config& c) { c.warn_after = 0.25; });
  only("FERRY_TIMEOUT", "86400", [](Config& c) { c.timeout = 86400; });
  only("FERRY_VERBOSE", "2", [](Config& c) { c.verbose = 2; });
  only("FERRY_TABLE", "t", [](Config& c) { c.table.text[0] = 't'; });
}

TEST_CASE("config: a wrong word names variable, value and the words allowed") {
  const Status status = outcome("FERRY_ENGINE", "fast");
  CHECK(status.kind == ErrorKind::configuration);
  CHECK(status.cause == "FERRY_ENGINE=fast is not allowed");
  CHECK(status.remedy == "use one of: inline, threads");
  for (const char* value : {"", "Inline", "inline ", " inline", "inline,threads", "1"}) {
    CHECK(refused("FERRY_ENGINE", value));
  }
  for (const char* value : {"", "ON", "1", "0", "yes", "offf"}) CHECK(refused("FERRY", value));
}

TEST_CASE("config: a wrong number says the range") {
  CHECK(outcome("FERRY_VERBOSE", "3").remedy == "use an integer from 0 to 2");
  CHECK(outcome("FERRY_SPIN", "x").remedy == "use auto or an integer from -1 to 1000000");
  CHECK(outcome("FERRY_STAGE_BYTES", "1K").remedy == "use auto or bytes from 4K to 16M");
  CHECK(outcome("FERRY_HEAP_MAX", "1").remedy == "use 0 or bytes from 1M to 16T");
  CHECK(outcome("FERRY_SLOT_BYTES", "1M").remedy == "use auto or bytes from 0 to 64K");
  CHECK(outcome("FERRY_TIMEOUT", "-1").remedy == "use seconds from 0 to 86400");
}

TEST_CASE("config: integers are taken whole and within their range") {
  for (const char* value : {"1", "01", "64"}) CHECK(outcome("FERRY_ENGINE_THREADS", value).ok());
  for (const char* value :
       {"", "0", "65", "-1", "+1", " 1", "1 ", "1.0", "1K", "0x1", "one", "4294967297",
        "99999999999999999999"}) {
    CHECK(refused("FERRY_ENGINE_THREADS", value));
  }
  CHECK(parse({{"FERRY_SPIN", "-1"}}).spin == -1);
  CHECK(parse({{"FERRY_SPIN", "auto"}}).spin == -1);
  CHECK(parse({{"FERRY_SPIN", "0"}}).spin == 0);
  CHECK(refused("FERRY_SPIN", "-2"));
  CHECK(refused("FERRY_SPIN", "1000001"));
}

TEST_CASE("config: sizes take suffixes, keep their bounds and never wrap") {
  const auto heap = [](const char* value) { return parse({{"FERRY_HEAP_MAX", value}}).heap_max; };
  CHECK(heap("0") == 0);
  CHECK(heap("1048576") == 1048576);
  CHECK(heap("1024K") == 1048576);
  CHECK(heap("1M") == 1048576);
  CHECK(heap("1m") == 1048576);
  CHECK(heap("7g") == 7516192768);
  CHECK(heap("16T") == 17592186044416);
  for (const char* value :
       {"", "K", "M", "1048575", "17T", "17592186044417", "-1M", "-1", "1MB", "1MiB", "1 M", "1.5G",
        "0x100000", "1KK", "18446744073709551616", "18446744073709551615", "16777217T",
        "18014398509481985K", "9007199254740993M"}) {
    CHECK(refused("FERRY_HEAP_MAX", value));
  }
  CHECK(parse({{"FERRY_SLOT_BYTES", "auto"}}).slot_bytes == -1);
  CHECK(parse({{"FERRY_SLOT_BYTES", "64K"}}).slot_bytes == 65536);
  CHECK(refused("FERRY_SLOT_BYTES", "65537"));
  CHECK(refused("FERRY_SLOT_BYTES", "-1"));
  CHECK(refused("FERRY_SLOT_BYTES", "9223372036854775807K"));
  CHECK(refused("FERRY_STAGE_BYTES", "4095"));
  CHECK(refused("FERRY_STAGE_BYTES", "0"));
  CHECK(parse({{"FERRY_STAGE_BYTES", "16M"}}).stage_bytes == 16777216);
  CHECK(refused("FERRY_STAGE_BYTES", "16385K"));
  CHECK(refused("FERRY_MAX_PACKET_BYTES", "63"));
  CHECK(parse({{"FERRY_MAX_PACKET_BYTES", "1G"}}).max_packet_bytes == 1073741824);
  CHECK(refused("FERRY_MAX_PACKET_BYTES", "1073741825"));
}

TEST_CASE("config: a path is short and printable") {
  const auto path = [](const std::string& value) {
    return std::string(parse({{"FERRY_TABLE", value}}).table.text);
  };
  CHECK(path("auto").empty());
  CHECK(path("builtin") == "builtin");
  CHECK(path("/tmp/a table.json") == "/tmp/a table.json");
  CHECK(path(std::string(255, 'x')).size() == 255);
  for (const std::string& value : {std::string(), std::string(256, 'x'), std::string("a\nb")}) {
    CHECK(refused("FERRY_TABLE", value));
  }
}

TEST_CASE("config: seconds may have a fraction and are finite") {
  CHECK(parse({{"FERRY_TIMEOUT", "0.001"}}).timeout == 0.001);
  CHECK(parse({{"FERRY_TIMEOUT", "1e2"}}).timeout == 100.0);
  for (const char* value :
       {"", "-0.5", "86400.1", "nan", "inf", "1s", "1,5", ".", "1e999", "0x10", " 1"}) {
    CHECK(refused("FERRY_TIMEOUT", value));
  }
}

TEST_CASE("config: what an error shows of a value is short and printable") {
  const Status status = outcome("FERRY_CMA", "\n\x1b[31m" + std::string(100'000, 'x'));
  CHECK(status.cause.size() < 128);
  CHECK(status.cause.rfind("FERRY_CMA=??[31mxxx", 0) == 0);
  CHECK(status.cause.find("... is not allowed") != std::string::npos);
}

TEST_CASE("config: what is written as value or default is read back as the same") {
  Config odd;
  odd.enabled = false;
  odd.engine_threads = 7;
  odd.segments = SegmentChoice::shm;
  odd.heap_max = 5 * Config::kMiB + 1;
  odd.slot_bytes = 0;
  odd.stage_bytes = 12 * Config::kKiB;
  odd.spin = 0;
  odd.timeout = 1.0 / 3;
  odd.table.text[0] = '/';
  for (const Config& given : {Config{}, odd}) {
    Environment values;
    Environment defaults;
    for (const auto& row : described(given)) {
      values[row["name"]] = row["value"];
      defaults[row["name"]] = row["default"];
    }
    CHECK(values.size() == kVariables);
    CHECK(parse(values) == given);
    CHECK(parse(defaults) == Config{});
  }
}

TEST_CASE("config: every variable is in all three descriptions, once, with its meaning") {
  const std::string text = describe_config(Format::text, Config{});
  const std::string page = describe_config(Format::markdown, Config{});
  std::set<std::string> names;
  for (const auto& row : described(Config{})) {
    const std::string name = row["name"];
    CAPTURE(name);
    CHECK(names.insert(name).second);
    CHECK(text.find("\n" + name + " ") != std::string::npos);
    CHECK(page.find("\n| `" + name + "` | ") != std::string::npos);
    CHECK(row["meaning"].get<std::string>().size() > 10);
    CHECK(text.find(row["meaning"].get<std::string>()) != std::string::npos);
    CHECK(page.find(row["meaning"].get<std::string>()) != std::string::npos);
  }
}

TEST_CASE("config: the page has no values of this process") {
  Config other;
  other.verbose = 2;
  CHECK(describe_config(Format::markdown, other) == describe_config(Format::markdown, Config{}));
  CHECK(describe_config(Format::markdown) == describe_config(Format::markdown, Config{}));
}

TEST_CASE("config: the variable in which two ranks differ has a name (case 85)") {
  static_assert(std::is_trivially_copyable_v<Config>, "ranks compare it as bytes");
  CHECK(ferry::core::differing_variable(Config{}, Config{}) == nullptr);
  for (const auto& row : described(Config{})) {
    const std::string name = row["name"];
    int tried = 0;
    for (const char* value :
         {"off", "threads", "2", "memfd", "1", "1M", "1K", "8K", "hsa", "block:2", "plans"}) {
      if (!outcome(name, value).ok() || parse({{name, value}}) == Config{}) continue;
      ++tried;
      CAPTURE(name);
      CAPTURE(value);
      const Config other = parse({{name, value}});
      REQUIRE(ferry::core::differing_variable(Config{}, other) != nullptr);
      CHECK(std::string{ferry::core::differing_variable(Config{}, other)} == name);
    }
    CHECK(tried > 0);
  }
}

TEST_CASE(
    "config: the snapshot does not follow the environment and is one for all threads (case 85)") {
  const Config first = ferry::core::config();
  const char* before = std::getenv("FERRY_VERBOSE");
  const std::string kept = before == nullptr ? "" : before;
  setenv("FERRY_VERBOSE", first.verbose == 2 ? "1" : "2", 1);
  std::vector<const Config*> seen(8, nullptr);
  {
    std::vector<std::jthread> threads;
    for (const Config*& slot : seen)
      threads.emplace_back([&slot] { slot = &ferry::core::config(); });
  }
  if (before == nullptr) {
    unsetenv("FERRY_VERBOSE");
  } else {
    setenv("FERRY_VERBOSE", kept.c_str(), 1);
  }
  for (const Config* slot : seen) CHECK(slot == &ferry::core::config());
  CHECK(ferry::core::config() == first);
}

TEST_CASE("config: pretended nodes") {
  const auto read = [](const char* text) {
    return parse_config([&](const char* name) {
             return std::string_view(name) == "FERRY_NODES" ? text : nullptr;
           })
        .nodes;
  };
  CHECK(read(nullptr) == ferry::core::NodeChoice{});
  CHECK(read("real") == ferry::core::NodeChoice{});
  CHECK(read("block:2") == ferry::core::NodeChoice{ferry::core::NodeOrder::block, 2});
  CHECK(read("scatter:1024") == ferry::core::NodeChoice{ferry::core::NodeOrder::scatter, 1024});
  for (const char* wrong :
       {"", "block", "block:", "block:0", "block:x", "scatter:1025", "real:2"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(static_cast<void>(read(wrong)), ferry::core::Failure);
  }
}
