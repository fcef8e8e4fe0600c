// SPDX-License-Identifier: MIT
#include "ferry-info-selftest.hpp"

#include <cstddef>
#include <cstdio>
#include <sstream>
#include <string>

#include <ferry/ferry.h>

int self_test() {
  constexpr std::size_t kRoom = std::size_t{1} << 20; // some lines for each pair of GPUs
  std::string text(kRoom, '\0');
  std::size_t needed = 0;
  const int code =
      ferry_describe(FERRY_TOPIC_SELF_TEST, FERRY_FORMAT_TEXT, text.data(), text.size(), &needed);
  if (code != MPI_SUCCESS) {
    std::fprintf(stderr, "ferry-info: %s\n", ferry_error_text());
    return 1;
  }
  text.resize(text.find('\0'));
  std::istringstream lines(text);
  std::string line;
  int passed = 0;
  int failed = 0;
  int skipped = 0;
  for (; std::getline(lines, line);) {
    std::printf("%s\n", line.c_str());
    if (line.starts_with("info ")) continue; // what was found, no verdict
    (line.starts_with("pass ") ? passed : line.starts_with("fail ") ? failed : skipped) += 1;
  }
  std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  return failed > 0 || std::fflush(stdout) != 0 ? 1 : 0;
}
