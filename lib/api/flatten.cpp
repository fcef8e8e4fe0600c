// SPDX-License-Identifier: MIT
#include "lib/api/flatten.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/error.hpp"

namespace ferry::core {
namespace {

using Numbers = std::vector<std::int64_t>;

struct Envelope {
  MPI_Count integers = 0;
  MPI_Count addresses = 0;
  MPI_Count counts = 0;
  MPI_Count types = 0;
  int combiner = 0;
};

// The form for large counts also answers for types that were made with int counts.
Envelope envelope_of(MPI_Datatype type) {
  Envelope e;
  PMPI_Type_get_envelope_c(type, &e.integers, &e.addresses, &e.counts, &e.types, &e.combiner);
  return e;
}

bool is_unnamed_predefined(int combiner) {
  return combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

// What a type was made of. `numbers` are its integers, addresses and counts, in this order: all
// constructors but subarray and darray then read the same in their int and their large form.
struct Contents {
  explicit Contents(MPI_Datatype type) : envelope(envelope_of(type)) {
    const auto size = [](MPI_Count n) { return static_cast<std::size_t>(n); };
    std::vector<int> integers(size(envelope.integers) + 1);
    std::vector<MPI_Aint> addresses(size(envelope.addresses) + 1);
    std::vector<MPI_Count> counts(size(envelope.counts) + 1);
    parts.resize(size(envelope.types) + 1, MPI_DATATYPE_NULL);
    PMPI_Type_get_contents_c(
        type, envelope.integers, envelope.addresses, envelope.counts, envelope.types,
        integers.data(), addresses.data(), counts.data(), parts.data());
    parts.pop_back();
    numbers.assign(integers.begin(), integers.end() - 1);
    numbers.insert(numbers.end(), addresses.begin(), addresses.end() - 1);
    numbers.insert(numbers.end(), counts.begin(), counts.end() - 1);
  }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents() {
    for (MPI_Datatype& part : parts) {
      if (!is_predefined(part)) PMPI_Type_free(&part);
    }
  }

  Envelope envelope;
  Numbers numbers;
  std::vector<MPI_Datatype> parts;
};

std::int64_t extent_of(MPI_Datatype type) {
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  PMPI_Type_get_extent_x(type, &lower, &extent);
  return extent;
}

std::uint64_t size_of(MPI_Datatype type) {
  MPI_Count size = 0;
  PMPI_Type_size_x(type, &size);
  return static_cast<std::uint64_t>(size);
}

template <class First>
Pieces pair_pieces() {
  struct Pair {
    First first;
    int second;
  };
  Pieces pair(sizeof(First));
  pair.append(Pieces(sizeof(int)), offsetof(Pair, second));
  return pair;
}

// Of the types that MPI brings, only pairs have gaps.
Pieces named(MPI_Datatype type) {
  if (type == MPI_DOUBLE_INT) return pair_pieces<double>();
  if (type == MPI_LONG_INT) return pair_pieces<long>();
  if (type == MPI_SHORT_INT) return pair_pieces<short>();
  if (type == MPI_LONG_DOUBLE_INT) return pair_pieces<long double>();
  const std::uint64_t size = size_of(type);
  if (size > 0 && static_cast<std::int64_t>(size) != extent_of(type)) {
    throw Failure(
        ErrorKind::type, fmt::format("a predefined type has {} bytes and another extent", size),
        "use the types and constructors of MPI 4.0");
  }
  return Pieces(size);
}

std::uint64_t unsigned_of(std::int64_t number) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0));
}

// `count` blocks of the same length, `stride` bytes from one to the next.
Pieces vector_of(
    const Pieces& part, std::int64_t extent, std::int64_t count, std::int64_t length,
    std::int64_t stride) {
  return part.repeated(unsigned_of(length), extent).repeated(unsigned_of(count), stride);
}

// Blocks of their own lengths at displacements in units of `unit` bytes.
Pieces indexed_of(
    const Pieces& part, std::int64_t extent, std::size_t count, const std::int64_t* lengths,
    const std::int64_t* displacements, std::int64_t unit) {
  Pieces all;
  Pieces block;
  std::int64_t length = -1;
  for (std::size_t i = 0; i < count; ++i) {
    if (lengths[i] != length) {
      length = lengths[i];
      block = part.repeated(unsigned_of(length), extent);
    }
    all.append(block, displacements[i] * unit);
  }
  return all;
}

Pieces indexed_block_of(
    const Pieces& part, std::int64_t extent, std::int64_t count, std::int64_t length,
    const std::int64_t* displacements, std::int64_t unit) {
  const Pieces block = part.repeated(unsigned_of(length), extent);
  Pieces all;
  for (std::int64_t i = 0; i < count; ++i) all.append(block, displacements[i] * unit);
  return all;
}

Pieces struct_of(const Contents& type) {
  const auto count = static_cast<std::size_t>(type.numbers[0]);
  Pieces all;
  for (std::size_t i = 0; i < count; ++i) {
    const auto length = unsigned_of(type.numbers[1 + i]);
    if (length == 0) continue;
    const Pieces part = flatten(type.parts[i]);
    all.append(part.repeated(length, extent_of(type.parts[i])), type.numbers[1 + count + i]);
  }
  return all;
}

// Dimensions from the one whose neighbours are next to each other to the slowest.
std::vector<std::size_t> fast_to_slow(std::size_t dimensions, std::int64_t order) {
  std::vector<std::size_t> result(dimensions);
  for (std::size_t i = 0; i < dimensions; ++i) {
    result[i] = order == MPI_ORDER_FORTRAN ? i : dimensions - 1 - i;
  }
  return result;
}

Pieces subarray_of(const Contents& type, Pieces part, std::int64_t extent) {
  const bool large = type.envelope.counts > 0;
  const auto dimensions = static_cast<std::size_t>(type.numbers[0]);
  // Counts come behind all integers: the order stands before the sizes then.
  const std::int64_t* sizes = type.numbers.data() + (large ? 2 : 1);
  const std::int64_t* lengths = sizes + dimensions;
  const std::int64_t* starts = lengths + dimensions;
  const std::int64_t order = large ? type.numbers[1] : starts[dimensions];
  std::int64_t shift = 0;
  for (const std::size_t d : fast_to_slow(dimensions, order)) {
    part = part.repeated(unsigned_of(lengths[d]), extent);
    shift += starts[d] * extent;
    extent *= sizes[d];
  }
  Pieces result;
  result.append(part, shift);
  return result;
}

// The elements that one of `parts` processes has of one dimension: blocks of `length`, dealt out in
// turn.
Pieces dealt(
    const Pieces& part, std::int64_t extent, std::int64_t size, std::int64_t length,
    std::int64_t parts, std::int64_t position) {
  const std::int64_t full = size / length;
  const std::int64_t blocks = full > position ? (full - position - 1) / parts + 1 : 0;
  Pieces result;
  result.append(
      vector_of(part, extent, blocks, length, parts * length * extent), position * length * extent);
  if (size % length != 0 && full % parts == position) {
    result.append(part.repeated(unsigned_of(size % length), extent), full * length * extent);
  }
  return result;
}

Pieces darray_of(const Contents& type, Pieces part, std::int64_t extent) {
  const auto dimensions = static_cast<std::size_t>(type.numbers[2]);
  const bool large = type.envelope.counts > 0;
  const std::int64_t* after = type.numbers.data() + 3;
  const std::int64_t* sizes = large ? type.numbers.data() + type.envelope.integers : after;
  const std::int64_t* kinds = large ? after : after + dimensions;
  const std::int64_t* lengths = kinds + dimensions;
  const std::int64_t* grid = lengths + dimensions;
  const std::int64_t order = grid[dimensions];
  // Processes are numbered row by row, whatever the order of the data.
  Numbers position(dimensions);
  std::int64_t rank = type.numbers[1];
  for (std::size_t d = dimensions; d-- > 0;) {
    position[d] = rank % grid[d];
    rank /= grid[d];
  }
  for (const std::size_t d : fast_to_slow(dimensions, order)) {
    const bool standard = lengths[d] == MPI_DISTRIBUTE_DFLT_DARG;
    std::int64_t length = lengths[d];
    if (kinds[d] == MPI_DISTRIBUTE_NONE) {
      length = sizes[d];
    } else if (standard) {
      length = kinds[d] == MPI_DISTRIBUTE_BLOCK ? (sizes[d] + grid[d] - 1) / grid[d] : 1;
    }
    part = dealt(part, extent, sizes[d], std::max<std::int64_t>(length, 1), grid[d], position[d]);
    extent *= sizes[d];
  }
  return part;
}

Pieces derived(const Contents& type) {
  const std::int64_t* n = type.numbers.data();
  if (type.envelope.combiner == MPI_COMBINER_STRUCT) return struct_of(type);
  const Pieces part = flatten(type.parts.front());
  const std::int64_t extent = extent_of(type.parts.front());
  switch (type.envelope.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return part;
    case MPI_COMBINER_CONTIGUOUS:
      return part.repeated(unsigned_of(n[0]), extent);
    case MPI_COMBINER_VECTOR:
      return vector_of(part, extent, n[0], n[1], n[2] * extent);
    case MPI_COMBINER_HVECTOR:
      return vector_of(part, extent, n[0], n[1], n[2]);
    case MPI_COMBINER_INDEXED:
      return indexed_of(part, extent, unsigned_of(n[0]), n + 1, n + 1 + n[0], extent);
    case MPI_COMBINER_HINDEXED:
      return indexed_of(part, extent, unsigned_of(n[0]), n + 1, n + 1 + n[0], 1);
    case MPI_COMBINER_INDEXED_BLOCK:
      return indexed_block_of(part, extent, n[0], n[1], n + 2, extent);
    case MPI_COMBINER_HINDEXED_BLOCK:
      return indexed_block_of(part, extent, n[0], n[1], n + 2, 1);
    case MPI_COMBINER_SUBARRAY:
      return subarray_of(type, part, extent);
    case MPI_COMBINER_DARRAY:
      return darray_of(type, part, extent);
    default:
      break;
  }
  throw Failure(
      ErrorKind::type,
      fmt::format("a datatype was made by constructor {} of this MPI", type.envelope.combiner),
      "use the types and constructors of MPI 4.0");
}

} // namespace

bool is_predefined(MPI_Datatype type) {
  const int combiner = envelope_of(type).combiner;
  return combiner == MPI_COMBINER_NAMED || is_unnamed_predefined(combiner);
}

Pieces flatten(MPI_Datatype type) {
  if (is_predefined(type)) return named(type);
  const Contents contents(type);
  return derived(contents);
}

} // namespace ferry::core
