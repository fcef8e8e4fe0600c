// SPDX-License-Identifier: MIT
#include "lib/memory/layout.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "lib/memory/every_other.hpp"

namespace ferry::core {
namespace {

// The base of data with absolute addresses is null: MPI_BOTTOM.
template <class Byte>
Byte* at(Byte* base, std::int64_t offset) {
  return reinterpret_cast<Byte*>(
      reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(offset));
}

// Which way the bytes go. A kernel is written once, for both.
struct Pack {
  using Data = const std::byte;
  using Packed = std::byte;
  static void move(Data* data, Packed* packed, std::size_t bytes) {
    std::memcpy(packed, data, bytes);
  }
  static std::uint64_t every_other(Data* data, std::uint64_t words, Packed* packed) {
    return pack_every_other(data, words, packed);
  }
};

struct Unpack {
  using Data = std::byte;
  using Packed = const std::byte;
  static void move(Data* data, Packed* packed, std::size_t bytes) {
    std::memcpy(data, packed, bytes);
  }
  static std::uint64_t every_other(Data* data, std::uint64_t words, Packed* packed) {
    return unpack_every_other(data, words, packed);
  }
};

// Whole pieces of a size that the compiler knows: loads and stores instead of a call each.
template <class Way, std::size_t kBytes>
void move_fixed(
    typename Way::Data* data, std::int64_t stride, std::uint64_t pieces,
    typename Way::Packed* packed) {
  std::uint64_t i = 0;
  for (; i + 4 <= pieces; i += 4) {
    Way::move(data, packed, kBytes);
    Way::move(at(data, stride), packed + kBytes, kBytes);
    Way::move(at(data, 2 * stride), packed + 2 * kBytes, kBytes);
    Way::move(at(data, 3 * stride), packed + 3 * kBytes, kBytes);
    data = at(data, 4 * stride);
    packed += 4 * kBytes;
  }
  for (; i < pieces; ++i) {
    Way::move(data, packed, kBytes);
    data = at(data, stride);
    packed += kBytes;
  }
}

template <class Way>
void move_pieces(
    typename Way::Data* data, std::int64_t stride, std::uint64_t pieces, std::uint64_t bytes,
    typename Way::Packed* packed) {
  if (bytes == 8 && stride == 16) {
    const std::uint64_t moved = Way::every_other(data, pieces, packed);
    data = at(data, static_cast<std::int64_t>(16 * moved));
    packed += 8 * moved;
    pieces -= moved;
  }
  switch (bytes) {
    case 1:
      return move_fixed<Way, 1>(data, stride, pieces, packed);
    case 2:
      return move_fixed<Way, 2>(data, stride, pieces, packed);
    case 4:
      return move_fixed<Way, 4>(data, stride, pieces, packed);
    case 8:
      return move_fixed<Way, 8>(data, stride, pieces, packed);
    case 12:
      return move_fixed<Way, 12>(data, stride, pieces, packed);
    case 16:
      return move_fixed<Way, 16>(data, stride, pieces, packed);
    case 24:
      return move_fixed<Way, 24>(data, stride, pieces, packed);
    case 32:
      return move_fixed<Way, 32>(data, stride, pieces, packed);
    case 64:
      return move_fixed<Way, 64>(data, stride, pieces, packed);
    default:
      break;
  }
  for (std::uint64_t i = 0; i < pieces; ++i) {
    Way::move(data, packed, bytes);
    data = at(data, stride);
    packed += bytes;
  }
}

// Bytes [skip, skip + bytes) of a run, which has them.
template <class Way>
void move_run(
    const Run& run, typename Way::Data* base, std::uint64_t skip, std::uint64_t bytes,
    typename Way::Packed* packed) {
  typename Way::Data* data = at(base, run.offset);
  if (skip > 0) {
    data = at(data, static_cast<std::int64_t>(skip / run.bytes) * run.stride);
    if (const std::uint64_t within = skip % run.bytes; within > 0) {
      const std::uint64_t head = std::min(run.bytes - within, bytes);
      Way::move(data + within, packed, head);
      data = at(data, run.stride);
      packed += head;
      bytes -= head;
    }
  }
  const bool whole = bytes == run.bytes * run.repeats; // most often: no division
  const std::uint64_t pieces = whole ? run.repeats : bytes / run.bytes;
  move_pieces<Way>(data, run.stride, pieces, run.bytes, packed);
  const std::uint64_t moved = pieces * run.bytes;
  if (moved == bytes) return;
  Way::move(
      at(data, static_cast<std::int64_t>(pieces) * run.stride), packed + moved, bytes - moved);
}

// The run that holds byte `skip` of one pass over the runs; skip is then counted from its begin.
std::size_t find_run(const TypeMap& map, std::uint64_t& skip) {
  if (!map.starts.empty()) {
    const auto next = std::upper_bound(map.starts.begin(), map.starts.end(), skip);
    skip -= *(next - 1);
    return static_cast<std::size_t>(next - map.starts.begin()) - 1;
  }
  std::size_t index = 0;
  while (skip >= map.runs[index].bytes * map.runs[index].repeats) {
    skip -= map.runs[index].bytes * map.runs[index].repeats;
    ++index;
  }
  return index;
}

template <class Way>
void move_map(
    const Layout& layout, typename Way::Data* base, std::uint64_t skip, std::uint64_t bytes,
    typename Way::Packed* packed) {
  const TypeMap& map = *layout.map;
  const std::uint64_t pass = layout.element_bytes / map.repeats;
  std::uint64_t element = skip / layout.element_bytes;
  skip %= layout.element_bytes;
  std::uint64_t repeat = skip / pass;
  skip %= pass;
  std::size_t index = find_run(map, skip);
  while (bytes > 0) {
    typename Way::Data* from =
        at(base, static_cast<std::int64_t>(element) * layout.extent +
                     static_cast<std::int64_t>(repeat) * map.stride);
    for (; index < map.runs.size() && bytes > 0; ++index) {
      const Run& run = map.runs[index];
      const std::uint64_t part = std::min(run.bytes * run.repeats - skip, bytes);
      move_run<Way>(run, from, skip, part, packed);
      packed += part;
      bytes -= part;
      skip = 0;
    }
    index = 0;
    if (++repeat < map.repeats) continue;
    repeat = 0;
    ++element;
  }
}

template <class Way>
void move(
    const Layout& layout, typename Way::Data* base, std::uint64_t skip, std::uint64_t bytes,
    typename Way::Packed* packed) {
  if (bytes == 0) return;
  if (layout.contiguous()) {
    Way::move(at(base, layout.offset + static_cast<std::int64_t>(skip)), packed, bytes);
  } else if (const auto run = layout.single_run()) {
    move_run<Way>(*run, base, skip, bytes, packed);
  } else {
    move_map<Way>(layout, base, skip, bytes, packed);
  }
}

// Pieces of one size straight from one stride to another.
template <std::size_t kBytes>
void copy_fixed(
    std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
    std::uint64_t pieces) {
  for (std::uint64_t i = 0; i < pieces; ++i) {
    std::memcpy(to, from, kBytes);
    to = at(to, to_stride);
    from = at(from, from_stride);
  }
}

// False for pieces of other sizes, which go by way of a stage.
bool copy_runs(const Run& to, std::byte* to_base, const Run& from, const std::byte* from_base) {
  const auto copy = [&](auto bytes) {
    copy_fixed<decltype(bytes)::value>(
        at(to_base, to.offset), to.stride, at(from_base, from.offset), from.stride, from.repeats);
    return true;
  };
  if (to.bytes != from.bytes) return false;
  switch (from.bytes) {
    case 4:
      return copy(std::integral_constant<std::size_t, 4>());
    case 8:
      return copy(std::integral_constant<std::size_t, 8>());
    case 12:
      return copy(std::integral_constant<std::size_t, 12>());
    case 16:
      return copy(std::integral_constant<std::size_t, 16>());
    case 24:
      return copy(std::integral_constant<std::size_t, 24>());
    case 32:
      return copy(std::integral_constant<std::size_t, 32>());
    case 64:
      return copy(std::integral_constant<std::size_t, 64>());
    default:
      return false;
  }
}

} // namespace

std::int64_t Layout::lower() const {
  if (map == nullptr || bytes() == 0) return offset;
  return map->lower + std::min<std::int64_t>(static_cast<std::int64_t>(count - 1) * extent, 0);
}

std::int64_t Layout::upper() const {
  if (map == nullptr || bytes() == 0) return offset + static_cast<std::int64_t>(bytes());
  return map->upper + std::max<std::int64_t>(static_cast<std::int64_t>(count - 1) * extent, 0);
}

std::optional<Run> Layout::single_run() const {
  if (map == nullptr || bytes() == 0) return Run{offset, bytes(), 1, 0};
  if (map->runs.size() != 1 || map->repeats != 1) return std::nullopt;
  const Run& run = map->runs.front();
  if (count == 1) return run;
  if (run.repeats == 1) return Run{run.offset, run.bytes, count, extent};
  if (extent != static_cast<std::int64_t>(run.repeats) * run.stride) return std::nullopt;
  return Run{run.offset, run.bytes, run.repeats * count, run.stride};
}

Layout contiguous_layout(std::uint64_t count, std::uint64_t element_bytes) {
  return {count, element_bytes, static_cast<std::int64_t>(element_bytes), 0, nullptr};
}

void pack(
    const Layout& layout, const std::byte* base, std::uint64_t skip, std::uint64_t bytes,
    std::byte* packed) {
  move<Pack>(layout, base, skip, bytes, packed);
}

void unpack(
    const Layout& layout, std::byte* base, std::uint64_t skip, std::uint64_t bytes,
    const std::byte* packed) {
  move<Unpack>(layout, base, skip, bytes, packed);
}

void copy_layout(
    const Layout& to, std::byte* to_base, const Layout& from, const std::byte* from_base) {
  const std::uint64_t bytes = from.bytes();
  if (to.contiguous()) return pack(from, from_base, 0, bytes, at(to_base, to.offset));
  if (from.contiguous()) return unpack(to, to_base, 0, bytes, at(from_base, from.offset));
  const auto to_run = to.single_run();
  const auto from_run = from.single_run();
  if (to_run && from_run && copy_runs(*to_run, to_base, *from_run, from_base)) return;
  // In pieces that stay in the first cache.
  alignas(64) std::byte stage[8192];
  for (std::uint64_t done = 0; done < bytes; done += sizeof stage) {
    const std::uint64_t part = std::min<std::uint64_t>(bytes - done, sizeof stage);
    pack(from, from_base, done, part, stage);
    unpack(to, to_base, done, part, stage);
  }
}

} // namespace ferry::core
