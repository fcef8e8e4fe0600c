// SPDX-License-Identifier: MIT
#include "lib/schedule/symbolic_memory.hpp"

#include <algorithm>

namespace ferry::core {
namespace {

Segment part_of(const Segment& segment, std::uint64_t skip, std::uint64_t bytes) {
  return {bytes, {segment.origin.rank, segment.origin.offset + skip}};
}

} // namespace

std::uint64_t total_bytes(const std::vector<Segment>& segments) {
  std::uint64_t total = 0;
  for (const Segment& segment : segments) total += segment.bytes;
  return total;
}

std::vector<Segment> SymbolicMemory::read(std::uint64_t offset, std::uint64_t bytes) const {
  std::vector<Segment> found;
  const std::uint64_t end = offset + bytes;
  auto it = segments_.upper_bound(offset);
  if (it != segments_.begin()) --it;
  for (; it != segments_.end() && it->first < end; ++it) {
    const std::uint64_t from = std::max(it->first, offset);
    const std::uint64_t to = std::min(it->first + it->second.bytes, end);
    if (from < to) found.push_back(part_of(it->second, from - it->first, to - from));
  }
  return found;
}

bool SymbolicMemory::touches(std::uint64_t offset, std::uint64_t bytes) const {
  return !read(offset, bytes).empty();
}

void SymbolicMemory::erase(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t end = offset + bytes;
  auto it = segments_.upper_bound(offset);
  if (it != segments_.begin()) --it;
  while (it != segments_.end() && it->first < end) {
    const std::uint64_t start = it->first;
    const Segment segment = it->second;
    const std::uint64_t stop = start + segment.bytes;
    if (stop <= offset) {
      ++it;
      continue;
    }
    it = segments_.erase(it);
    if (start < offset) segments_[start] = part_of(segment, 0, offset - start);
    if (stop > end) segments_[end] = part_of(segment, end - start, stop - end);
  }
}

void SymbolicMemory::write(std::uint64_t offset, const std::vector<Segment>& segments) {
  erase(offset, total_bytes(segments));
  for (const Segment& segment : segments) {
    if (segment.bytes > 0) segments_[offset] = segment;
    offset += segment.bytes;
  }
}

} // namespace ferry::core
