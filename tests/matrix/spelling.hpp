// SPDX-License-Identifier: MIT
// Many datatypes for one signature: what two ranks call a message need only agree in the order of
// its basic elements (case 23).
#pragma once

#include <cstdint>
#include <vector>

#include <mpi.h>

#include "../support/seeded.hpp"

namespace ferry::test {

// What signatures are made of; a record is an int and a double.
enum class Basic { byte, word, number, record };
inline constexpr int kBasics = 4;
[[nodiscard]] std::int64_t bytes_of(Basic basic);

// A committed datatype and the oracle of it: where the bytes of one element lie.
struct Spelled {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool owned = false;
  std::int64_t extent = 0;
  std::vector<std::int64_t> places;

  Spelled() = default;
  Spelled(Spelled&& other) noexcept;
  Spelled& operator=(Spelled&& other) noexcept;
  ~Spelled() { free(); }
  // MPI allows it as soon as a call has taken the type.
  void free();
};

// A type of `units` basic elements, by a constructor that the dice choose. Elements side by side do
// not overlap. With `columns`, up to that many may lie between the parts of one: a column of a
// matrix.
[[nodiscard]] Spelled spell(Dice& dice, Basic basic, std::int64_t units, std::int64_t columns);
// A type without bytes.
[[nodiscard]] Spelled spell_nothing(Dice& dice);

} // namespace ferry::test
