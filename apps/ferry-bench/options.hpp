// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <ferry/ferry.h>

namespace ferry::bench {

// What was asked for. Equal on all ranks, since all get the same arguments.
struct Options {
  ferry_operation operation = FERRY_ALLTOALL;
  ferry_form form = FERRY_BLOCKING;
  // Bytes per peer block; of the message for a broadcast. In the order in which they are measured.
  std::vector<std::uint64_t> sizes;
  bool shared = false; // buffers come from ferry_alloc
  std::size_t offset = 0; // bytes between the begin of a page and that of a buffer
  bool in_place = false;
  int root = 0;
  bool peer = true; // measure the MPI below too
  bool limit = false; // and the bare copies
  double seconds = 2; // for the rounds of one size
  std::optional<int> rounds; // empty: as many as the time per size allows, kDefaultRounds at most
  bool check = false;
  std::string json; // empty: none; "-": standard output
  std::string plot; // empty: none; else a name in .svg or .png
  std::string draw; // draw this file of results and measure nothing
  std::uint64_t seed = 1;
};

inline constexpr int kDefaultRounds = 11;

// A bad command line; what() is one sentence.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[nodiscard]] const char* name_of(ferry_operation operation);
[[nodiscard]] const char* name_of(ferry_form form);

// "0", "8", "64K", "1M", "2G" as bytes (K = 1024). Throws UsageError naming the option.
[[nodiscard]] std::uint64_t parse_size(const std::string& text, const std::string& option);

// Empty when --help was asked for. Throws UsageError.
[[nodiscard]] std::optional<Options> parse_options(int argc, const char* const* argv, int ranks);

[[nodiscard]] std::string help_text();

} // namespace ferry::bench
