// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace ferry::test {

inline std::size_t entries_of(const char* folder) {
  std::size_t count = 0;
  std::error_code gone;
  for (std::filesystem::directory_iterator it(folder, gone), end; !gone && it != end;
       it.increment(gone)) {
    ++count;
  }
  return count;
}

// What a process holds of the machine.
struct Holdings {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::size_t mappings = 0;
  std::size_t resident_kib = 0;
  std::size_t named_segments = 0; // mappings of files that still lie in /dev/shm
};

inline Holdings holdings() {
  Holdings now;
  now.descriptors = entries_of("/proc/self/fd");
  now.threads = entries_of("/proc/self/task");
  std::ifstream maps("/proc/self/maps");
  std::string line;
  for (int i = 0; i < 1 << 20 && std::getline(maps, line); ++i) {
    ++now.mappings;
    const bool deleted = line.ends_with("(deleted)");
    if (line.find(" /dev/shm/") != std::string::npos && !deleted) ++now.named_segments;
  }
  std::ifstream status("/proc/self/status");
  for (int i = 0; i < 1000 && std::getline(status, line); ++i) {
    if (line.rfind("VmRSS:", 0) == 0) now.resident_kib = std::stoul(line.substr(6));
  }
  return now;
}

} // namespace ferry::test
