// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ferry::core {

enum class EngineChoice { inline_, threads };
enum class SegmentChoice { auto_, memfd, shm };
enum class CmaChoice { auto_, off };
enum class DeviceCallChoice { host, plans };
enum class AmdPathChoice { auto_, kfd, hsa, kernels, staging };
enum class NodeOrder { real, block, scatter };

// Nodes that tests pretend.
struct NodeChoice {
  NodeOrder order = NodeOrder::real;
  int nodes = 1;
  bool operator==(const NodeChoice&) const = default;
};

// A short text of its own, since Config is sent as bytes.
struct PathText {
  char text[256] = {};
  friend bool operator==(const PathText&, const PathText&) = default;
};

// The configuration of this process, one field for each line of config.def. Config{} is the
// default.
struct Config {
  static constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
  static constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  static constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  static constexpr std::uint64_t kTiB = std::uint64_t{1} << 40;

#define FERRY_VARIABLE(type, field, name, initial, rule, meaning) type field = initial;
#include "lib/config/config.def"

  friend bool operator==(const Config&, const Config&) = default;
};

// The environment as it was at the first call that succeeded; later changes are not seen. Throws
// Failure(configuration) while a variable holds a wrong value. Safe to call from any thread.
[[nodiscard]] const Config& config();

// Value of a variable by name, or nullptr when it is missing. An empty value is not a missing one.
using VariableGetter = std::function<const char*(const char* name)>;

// Reads every variable through get. Missing means default; wrong throws Failure(configuration) that
// names the variable, its value and what is allowed.
[[nodiscard]] Config parse_config(const VariableGetter& get);

// The first variable in which two processes differ, or nullptr; Config may be sent as bytes.
[[nodiscard]] const char* differing_variable(const Config& a, const Config& b);

enum class Format { text, json, markdown };

// The variables with default and meaning: as a text table or a JSON array with the values of given,
// or as the page doc/environment.md, which has no values.
[[nodiscard]] std::string describe_config(Format format, const Config& given);

// The same with the values of config(); the Markdown page does not read the environment.
[[nodiscard]] std::string describe_config(Format format);

} // namespace ferry::core
