// SPDX-License-Identifier: MIT
#include "spelling.hpp"

#include <algorithm>
#include <utility>

namespace ferry::test {
namespace {

std::int64_t extent_of(MPI_Datatype type) {
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  MPI_Type_get_extent_x(type, &lower, &extent);
  return extent;
}

// Takes a new type over. What it was made of may be freed: MPI keeps what it needs.
Spelled adopt(MPI_Datatype type, std::vector<std::int64_t> places) {
  Spelled made;
  MPI_Type_commit(&type);
  made.type = type;
  made.owned = true;
  made.extent = extent_of(type);
  made.places = std::move(places);
  return made;
}

void add(std::vector<std::int64_t>& to, const Spelled& part, std::int64_t shift) {
  for (const std::int64_t place : part.places) to.push_back(place + shift);
}

// Parts at displacements in bytes.
std::vector<std::int64_t> placed(const Spelled& part, const std::vector<MPI_Aint>& displs) {
  std::vector<std::int64_t> places;
  for (const MPI_Aint displ : displs) add(places, part, displ);
  return places;
}

Spelled predefined(MPI_Datatype type) {
  Spelled made;
  made.type = type;
  made.extent = extent_of(type);
  for (std::int64_t i = 0; i < made.extent; ++i) made.places.push_back(i);
  return made;
}

// With a gap, without, the double first in memory, and around address 0.
Spelled record(Dice& dice) {
  constexpr MPI_Aint kPlaces[][2] = {{0, 8}, {0, 4}, {8, 0}, {-8, 0}};
  const auto& displs = dice.pick(kPlaces);
  const int lengths[] = {1, 1};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(2, lengths, displs, types, &type);
  std::vector<std::int64_t> places;
  add(places, predefined(MPI_INT), displs[0]);
  add(places, predefined(MPI_DOUBLE), displs[1]);
  return adopt(type, std::move(places));
}

Spelled basic_type(Dice& dice, Basic basic) {
  switch (basic) {
    case Basic::byte:
      return predefined(MPI_BYTE);
    case Basic::word:
      return predefined(MPI_INT);
    case Basic::number:
      return predefined(MPI_DOUBLE);
    case Basic::record:
      break;
  }
  return record(dice);
}

std::vector<MPI_Aint> steps(std::int64_t count, std::int64_t from, std::int64_t step) {
  std::vector<MPI_Aint> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(from + i * step);
  return result;
}

Spelled contiguous(const Spelled& part, std::int64_t count) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(count), part.type, &type);
  return adopt(type, placed(part, steps(count, 0, part.extent)));
}

Spelled vector(Dice& dice, const Spelled& part, std::int64_t count) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const std::int64_t gap = dice.between(1, 3);
  if (dice.one_in(2)) {
    MPI_Type_vector(static_cast<int>(count), 1, static_cast<int>(1 + gap), part.type, &type);
    return adopt(type, placed(part, steps(count, 0, (1 + gap) * part.extent)));
  }
  const std::int64_t step = part.extent + gap; // bytes: nothing is aligned
  MPI_Type_create_hvector(static_cast<int>(count), 1, step, part.type, &type);
  return adopt(type, placed(part, steps(count, 0, step)));
}

// The lower bound lies before the address that the caller gives.
Spelled resized(Dice& dice, const Spelled& part, std::int64_t count) {
  const std::int64_t before = dice.between(1, 40);
  const std::int64_t from = dice.between(-before, 0);
  const std::vector<MPI_Aint> displs = steps(count, from, part.extent);
  MPI_Datatype shifted = MPI_DATATYPE_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed_block(static_cast<int>(count), 1, displs.data(), part.type, &shifted);
  MPI_Type_create_resized(
      shifted, -before, before + count * part.extent + dice.between(0, 24), &type);
  MPI_Type_free(&shifted);
  return adopt(type, placed(part, displs));
}

Spelled subarray(Dice& dice, const Spelled& part, std::int64_t count) {
  const std::int64_t rows = count % 2 == 0 ? 2 : 1;
  const std::int64_t columns = count / rows;
  const bool fortran = dice.one_in(2);
  const std::int64_t row_start = dice.between(0, 1);
  const std::int64_t column_start = dice.between(0, 2);
  const auto width = static_cast<int>(columns + column_start + dice.between(0, 2));
  int sizes[] = {static_cast<int>(rows + row_start), width};
  int lengths[] = {static_cast<int>(rows), static_cast<int>(columns)};
  int starts[] = {static_cast<int>(row_start), static_cast<int>(column_start)};
  if (fortran) {
    std::swap(sizes[0], sizes[1]);
    std::swap(lengths[0], lengths[1]);
    std::swap(starts[0], starts[1]);
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const int order = fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
  MPI_Type_create_subarray(2, sizes, lengths, starts, order, part.type, &type);
  std::vector<std::int64_t> places;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t index = (row + row_start) * width + column + column_start;
      add(places, part, index * part.extent);
    }
  }
  return adopt(type, std::move(places));
}

// The second part lies before the first.
Spelled structure(Dice& dice, const Spelled& part, std::int64_t count) {
  const std::int64_t second = dice.between(0, count);
  const std::int64_t first = count - second;
  const std::int64_t from = dice.between(-20, 20);
  const std::int64_t behind = from + second * part.extent + dice.between(0, 9);
  const int lengths[] = {static_cast<int>(first), static_cast<int>(second)};
  const MPI_Aint displs[] = {behind, from};
  const MPI_Datatype types[] = {part.type, part.type};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(2, lengths, displs, types, &type);
  std::vector<std::int64_t> places = placed(part, steps(first, behind, part.extent));
  const std::vector<std::int64_t> rest = placed(part, steps(second, from, part.extent));
  places.insert(places.end(), rest.begin(), rest.end());
  return adopt(type, std::move(places));
}

// From the last place to the first.
Spelled indexed(Dice& dice, const Spelled& part, std::int64_t count) {
  const std::int64_t step = dice.between(1, 2);
  std::vector<int> lengths(static_cast<std::size_t>(count), 1);
  std::vector<int> displs;
  std::vector<MPI_Aint> bytes;
  for (std::int64_t i = count; i-- > 0;) {
    displs.push_back(static_cast<int>(i * step));
    bytes.push_back(i * step * part.extent);
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_indexed(static_cast<int>(count), lengths.data(), displs.data(), part.type, &type);
  return adopt(type, placed(part, bytes));
}

Spelled hindexed(Dice& dice, const Spelled& part, std::int64_t count) {
  std::vector<int> lengths;
  std::vector<MPI_Aint> displs;
  std::vector<MPI_Aint> elements;
  std::int64_t at = dice.between(-30, 30);
  for (std::int64_t left = count; left > 0;) {
    const std::int64_t length = dice.between(1, std::min<std::int64_t>(left, 3));
    lengths.push_back(static_cast<int>(length));
    displs.push_back(at);
    for (std::int64_t i = 0; i < length; ++i) elements.push_back(at + i * part.extent);
    at += length * part.extent + dice.between(0, 7);
    left -= length;
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed(
      static_cast<int>(lengths.size()), lengths.data(), displs.data(), part.type, &type);
  return adopt(type, placed(part, elements));
}

// The share of one of up to three processes of an array with one or two rows, whose columns are
// dealt out in blocks or in turn.
Spelled distributed(Dice& dice, const Spelled& part, std::int64_t count) {
  const std::int64_t rows = count % 2 == 0 ? 2 : 1;
  const std::int64_t columns = count / rows;
  const std::int64_t processes = dice.between(1, 3);
  const std::int64_t rank = dice.between(0, processes - 1);
  const bool cyclic = dice.one_in(2);
  const std::int64_t block = cyclic ? dice.between(1, 3) : columns;
  std::vector<std::int64_t> mine;
  std::int64_t width = 0;
  for (; static_cast<std::int64_t>(mine.size()) < columns; ++width) {
    if (width / block % processes == rank) mine.push_back(width);
  }
  if (!cyclic) width = processes * block;
  int sizes[] = {static_cast<int>(rows), static_cast<int>(width)};
  int kinds[] = {MPI_DISTRIBUTE_NONE, cyclic ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_BLOCK};
  int blocks[] = {MPI_DISTRIBUTE_DFLT_DARG, static_cast<int>(block)};
  int grid[] = {1, static_cast<int>(processes)};
  const bool fortran = dice.one_in(2);
  if (fortran) {
    for (int* pair : {sizes, kinds, blocks, grid}) std::swap(pair[0], pair[1]);
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const int order = fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
  MPI_Type_create_darray(
      static_cast<int>(processes), static_cast<int>(rank), 2, sizes, kinds, blocks, grid, order,
      part.type, &type);
  std::vector<MPI_Aint> displs;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const std::int64_t at : mine) displs.push_back((row * width + at) * part.extent);
  }
  return adopt(type, placed(part, displs));
}

Spelled column(const Spelled& part, std::int64_t count, std::int64_t columns) {
  MPI_Datatype strided = MPI_DATATYPE_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(static_cast<int>(count), 1, static_cast<int>(columns), part.type, &strided);
  MPI_Type_create_resized(strided, 0, part.extent, &type);
  MPI_Type_free(&strided);
  return adopt(type, placed(part, steps(count, 0, columns * part.extent)));
}

Spelled compose(Dice& dice, const Spelled& part, std::int64_t count, std::int64_t columns) {
  switch (dice.between(columns > 0 ? 0 : 1, 9)) {
    case 0:
      return column(part, count, columns);
    case 1:
      return contiguous(part, count);
    case 2:
      return vector(dice, part, count);
    case 3:
      return resized(dice, part, count);
    case 4:
      return subarray(dice, part, count);
    case 5:
      return structure(dice, part, count);
    case 6:
      return indexed(dice, part, count);
    case 7:
      return hindexed(dice, part, count);
    case 8:
      return distributed(dice, part, count);
    default:
      break;
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const Spelled plain = contiguous(part, count);
  MPI_Type_dup(plain.type, &type);
  return adopt(type, plain.places);
}

} // namespace

std::int64_t bytes_of(Basic basic) {
  switch (basic) {
    case Basic::byte:
      return 1;
    case Basic::word:
      return 4;
    case Basic::number:
      return 8;
    case Basic::record:
      break;
  }
  return 12;
}

Spelled::Spelled(Spelled&& other) noexcept
    : type(other.type),
      owned(std::exchange(other.owned, false)),
      extent(other.extent),
      places(std::move(other.places)) {}

Spelled& Spelled::operator=(Spelled&& other) noexcept {
  free();
  type = other.type;
  owned = std::exchange(other.owned, false);
  extent = other.extent;
  places = std::move(other.places);
  return *this;
}

void Spelled::free() {
  if (owned) MPI_Type_free(&type);
  owned = false;
}

Spelled spell(Dice& dice, Basic basic, std::int64_t units, std::int64_t columns) {
  Spelled part = basic_type(dice, basic);
  if (units == 1 && dice.one_in(2)) return part;
  if (units % 2 == 0 && dice.one_in(3)) {
    const Spelled pair = compose(dice, part, 2, 0);
    return compose(dice, pair, units / 2, columns);
  }
  return compose(dice, part, units, columns);
}

Spelled spell_nothing(Dice& dice) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (dice.one_in(2)) {
    MPI_Type_contiguous(0, MPI_INT, &type);
  } else {
    MPI_Type_vector(3, 0, 2, MPI_DOUBLE, &type);
  }
  return adopt(type, {});
}

} // namespace ferry::test
