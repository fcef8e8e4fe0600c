// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <mpi.h>

#include "seeded.hpp"

namespace ferry::test {

// A datatype of this MPI and the oracle of it: where each byte of one element lies, in the order of
// the type map.
struct MappedType {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool owned = false;
  std::vector<std::int64_t> places;
  // Made of a type without bytes or without an extent above 0: MPICH 4.0.2 packs some of them
  // wrongly or crashes.
  bool doubtful = false;

  void free() {
    if (owned) MPI_Type_free(&type);
    owned = false;
  }
};

inline std::int64_t extent_of(MPI_Datatype type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(type, &lower, &extent);
  return extent;
}

// Random nested datatypes, by all constructors of MPI 4.0, in their int and their large form. The
// oracle follows the text of the standard: loops over single elements.
class RandomTypes {
 public:
  explicit RandomTypes(Dice& dice) : dice_(dice) {}

  // Committed; the caller frees it.
  MappedType make(int depth) {
    MappedType made = nested(depth);
    if (made.owned) MPI_Type_commit(&made.type);
    return made;
  }

 private:
  using Places = std::vector<std::int64_t>;
  static constexpr std::size_t kMostBytes = 3000;
  static constexpr int kConstructors = 12;

  static void add(Places& to, const Places& from, std::int64_t shift) {
    for (const std::int64_t place : from) to.push_back(place + shift);
  }

  MappedType nested(int depth) {
    if (depth == 0) return leaf();
    MappedType part = nested(depth - 1);
    MappedType made = build(part);
    made.doubtful = part.doubtful || part.places.empty() || extent_of(made.type) <= 0;
    if (made.places.size() > kMostBytes) {
      made.free();
      return part;
    }
    part.free();
    return made;
  }

  MappedType leaf();
  MappedType build(const MappedType& part);
  MappedType vector(const MappedType& part, bool in_bytes);
  MappedType indexed(const MappedType& part, bool in_bytes);
  MappedType indexed_block(const MappedType& part, bool in_bytes);
  MappedType structure(const MappedType& part);
  MappedType subarray(const MappedType& part);
  MappedType darray(const MappedType& part);
  MappedType resized(const MappedType& part);

  int small(int low, int high) { return static_cast<int>(dice_.between(low, high)); }
  bool large() { return dice_.one_in(2); }

  Dice& dice_;
};

} // namespace ferry::test
