// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace ferry::core {

// Where bytes come from: a rank's source buffer and the offset in it.
struct Origin {
  int rank = 0;
  std::uint64_t offset = 0;
};

struct Segment {
  std::uint64_t bytes = 0;
  Origin origin;
};

// Memory as intervals with origins instead of bytes, so that a plan over gigabytes is run in
// microseconds.
class SymbolicMemory {
 public:
  // The content of [offset, offset + bytes), or fewer bytes when a part was never written.
  [[nodiscard]] std::vector<Segment> read(std::uint64_t offset, std::uint64_t bytes) const;
  void write(std::uint64_t offset, const std::vector<Segment>& segments);
  // True when a byte of the range has been written.
  [[nodiscard]] bool touches(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  void erase(std::uint64_t offset, std::uint64_t bytes);
  std::map<std::uint64_t, Segment> segments_;
};

[[nodiscard]] std::uint64_t total_bytes(const std::vector<Segment>& segments);

} // namespace ferry::core
