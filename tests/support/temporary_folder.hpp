// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>
#include <atomic>
#include <filesystem>
#include <string>
#include <system_error>

namespace ferry::test {

// A new empty folder, which goes with all that is in it at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::atomic<int> made{0};
    const std::string start = std::filesystem::temp_directory_path() / "ferry-test-";
    bool is_new = false;
    while (is_new == false) { // a folder that an earlier process left may have the name
      path_ = start + std::to_string(getpid()) + "-" + std::to_string(++made);
      is_new = std::filesystem::create_directory(path_); // throws when it cannot
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

} // namespace ferry::test
