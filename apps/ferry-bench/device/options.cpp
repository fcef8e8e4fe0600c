// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/device/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "apps/ferry-bench/device/nccl.hpp"
#include "apps/ferry-bench/options.hpp"

namespace ferry::bench {

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct Word {
  const char* text;
  Wanted wanted;
};
constexpr Word kWords[] = {
    {"alltoall", {FERRY_ALLTOALL, Shape::plain, false}},
    {"allgather", {FERRY_ALLGATHER, Shape::plain, false}},
    {"broadcast", {FERRY_BCAST, Shape::plain, false}},
    {"alltoallv", {FERRY_ALLTOALLV, Shape::plain, false}},
    {"alltoallv-zeros", {FERRY_ALLTOALLV, Shape::zeros, false}},
    {"alltoallv-others", {FERRY_ALLTOALLV, Shape::others, false}},
    {"allgatherv", {FERRY_ALLGATHERV, Shape::plain, false}},
    {"allgatherv-zeros", {FERRY_ALLGATHERV, Shape::zeros, false}},
    {"alltoall-armed", {FERRY_ALLTOALL, Shape::plain, true}},
};

std::string value_of(int& i, int argc, const char* const* argv) {
  if (i + 1 >= argc) throw UsageError(fmt::format("{} needs a value", argv[i]));
  return argv[++i];
}

// Whether the word names operations, which are then added.
bool add_operations(const std::string& word, DeviceOptions& o) {
  bool found = false;
  for (const Word& known : kWords) {
    if (word != known.text && word != "all") continue;
    o.operations.push_back(known.wanted);
    found = true;
  }
  return found;
}

void add_sizes(std::string list, DeviceOptions& o) {
  list += ",";
  for (std::size_t at = 0; (at = list.find(',')) != std::string::npos; list.erase(0, at + 1)) {
    o.sizes.push_back(parse_size(list.substr(0, at), "--sizes"));
  }
}

void add_default_sizes(DeviceOptions& o) {
  for (std::uint64_t bytes = 8; bytes <= 256 * kMiB; bytes *= 4) o.sizes.push_back(bytes);
  for (const std::uint64_t mib : {1, 4, 16, 64}) o.sizes.push_back(mib * kMiB);
  std::sort(o.sizes.begin(), o.sizes.end());
  o.sizes.erase(std::unique(o.sizes.begin(), o.sizes.end()), o.sizes.end());
}

} // namespace

DeviceOptions parse_device(int argc, const char* const* argv) {
  DeviceOptions o;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (add_operations(word, o)) continue;
    if (word == "--memory") {
      value_of(i, argc, argv);
    } else if (word == "--peer") {
      const std::string peer = value_of(i, argc, argv);
      if (peer != kNcclName && peer != "none") {
        throw UsageError(fmt::format("--peer: {} or none", kNcclName));
      }
      o.nccl = peer == kNcclName;
    } else if (word == "--overlap") {
      o.overlap = true;
    } else if (word == "--rounds") {
      o.rounds = std::max(1, std::atoi(value_of(i, argc, argv).c_str()));
    } else if (word == "--limit") {
      o.limit = std::atoi(value_of(i, argc, argv).c_str());
    } else if (word == "--json") {
      o.json = value_of(i, argc, argv);
    } else if (word == "--sizes") {
      add_sizes(value_of(i, argc, argv), o);
    } else {
      throw UsageError(fmt::format("'{}' is not known with --memory device", word));
    }
  }
  if (o.operations.empty()) o.operations.push_back({});
  if (o.sizes.empty()) add_default_sizes(o);
  return o;
}

} // namespace ferry::bench
