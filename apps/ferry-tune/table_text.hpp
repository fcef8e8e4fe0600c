// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "apps/ferry-tune/crossover.hpp"

namespace ferry::tune {

// A table under construction, out of the text that Ferry gives of its own.
class TableText {
 public:
  // Throws std::runtime_error when this is no table.
  explicit TableText(const std::string& text);

  [[nodiscard]] std::uint64_t value(const std::string& entry) const;
  // As measured here.
  void set(const std::string& entry, const Finding& found);
  // For a trial: the value alone.
  void set_value(const std::string& entry, std::uint64_t value);
  void set_machine(const std::string& cpu, std::uint64_t cores);
  void set_gpu(const std::string& gpu);
  void set_date(const std::string& date);
  void set_versions(const std::string& ferry, const std::string& mpi);

  // The file, one entry a line, with the checksum that doc/tuning.md describes.
  [[nodiscard]] std::string write() const;

 private:
  nlohmann::ordered_json content_;
};

} // namespace ferry::tune
