// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <mpi.h>

namespace ferry::test {

enum class Spelling { plain, whole, pairs, dup };
inline constexpr int kSpellings = 4;

struct TypedCount {
  MPI_Count count = 0;
  MPI_Datatype type = MPI_BYTE;
};

// Owner of the derived types that spell a number of bytes in one way.
class Types {
 public:
  Types() = default;
  Types(const Types&) = delete;
  Types& operator=(const Types&) = delete;
  ~Types() { free(); }

  // MPI allows this as soon as a call has taken the type, also for a pending operation.
  void free() {
    for (auto& type : owned_) MPI_Type_free(&type);
    owned_.clear();
  }

  // bytes as elements of base (MPI_DOUBLE, MPI_INT or MPI_BYTE, the widest up to width that divides
  // bytes), spelled as n elements, as one contiguous block, as pairs, or as n of a duplicate.
  TypedCount spell(std::size_t bytes, std::size_t width, Spelling how) {
    const bool is_double = width >= 8 && bytes % 8 == 0;
    const bool is_int = !is_double && width >= 4 && bytes % 4 == 0;
    const MPI_Datatype base = is_double ? MPI_DOUBLE : is_int ? MPI_INT : MPI_BYTE;
    const std::size_t elements = bytes / (is_double ? 8 : is_int ? 4 : 1);
    if (how == Spelling::whole) return {1, contiguous(elements, base)};
    if (how == Spelling::pairs && elements % 2 == 0) {
      return {static_cast<MPI_Count>(elements / 2), contiguous(2, base)};
    }
    const auto count = static_cast<MPI_Count>(elements);
    if (how != Spelling::dup) return {count, base};
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_dup(base, &type);
    owned_.push_back(type);
    return {count, type};
  }

  MPI_Datatype contiguous(std::size_t elements, MPI_Datatype base) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(static_cast<int>(elements), base, &type);
    MPI_Type_commit(&type);
    owned_.push_back(type);
    return type;
  }

 private:
  std::vector<MPI_Datatype> owned_;
};

} // namespace ferry::test
