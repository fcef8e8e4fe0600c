// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace ferry::core {

// `repeats` pieces of `bytes` bytes each, `stride` bytes from one to the next, the first at
// `offset` from the buffer's start.
struct Run {
  std::int64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t repeats = 1;
  std::int64_t stride = 0;
  bool operator==(const Run&) const = default;
};

// The data of one element of a derived datatype, in the order of its type map: all `runs`, and that
// `repeats` times, `stride` bytes from one time to the next. Pieces makes it (type_map.hpp).
struct TypeMap {
  std::vector<Run> runs;
  std::int64_t lower = 0; // first byte that is touched, and the one behind the last
  std::int64_t upper = 0;
  std::uint64_t repeats = 1;
  std::int64_t stride = 0;
  std::vector<std::uint64_t> starts; // of many runs: where each begins in the packed data
};

// Where the data of `count` elements lies, relative to the address that the caller gave. Packed,
// it is bytes() bytes long.
struct Layout {
  std::uint64_t count = 0; // elements
  std::uint64_t element_bytes = 0; // data bytes of one element
  std::int64_t extent = 0; // bytes from one element to the next
  std::int64_t offset = 0; // of the first byte, when contiguous
  std::shared_ptr<const TypeMap> map; // null: all bytes lie side by side, from `offset`

  [[nodiscard]] std::uint64_t bytes() const { return count * element_bytes; }
  [[nodiscard]] bool contiguous() const { return map == nullptr; }
  // The bytes that are touched lie in [lower, upper), relative to the caller's address.
  [[nodiscard]] std::int64_t lower() const;
  [[nodiscard]] std::int64_t upper() const;
  // All the data as one run, where that is possible: what a strided copy can move in one step.
  [[nodiscard]] std::optional<Run> single_run() const;
  // Elements of one flattened type share their map.
  bool operator==(const Layout&) const = default;
};

[[nodiscard]] Layout contiguous_layout(std::uint64_t count, std::uint64_t element_bytes);

// Bytes [skip, skip + bytes) of the packed data, read from or written to where they lie. `base` is
// the address that the caller gave.
void pack(
    const Layout& layout, const std::byte* base, std::uint64_t skip, std::uint64_t bytes,
    std::byte* packed);
void unpack(
    const Layout& layout, std::byte* base, std::uint64_t skip, std::uint64_t bytes,
    const std::byte* packed);
// From one layout to another of as many bytes, for data that do not overlap.
void copy_layout(
    const Layout& to, std::byte* to_base, const Layout& from, const std::byte* from_base);

} // namespace ferry::core
