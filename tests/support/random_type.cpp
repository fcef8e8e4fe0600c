// SPDX-License-Identifier: MIT
#include "random_type.hpp"

#include <algorithm>

namespace ferry::test {
namespace {

struct Leaf {
  MPI_Datatype type;
  std::size_t first; // bytes of the first member
  std::size_t second_at; // where an int follows, 0 for none
};

template <class T>
std::vector<T> converted(const std::vector<std::int64_t>& from) {
  std::vector<T> to;
  for (const std::int64_t value : from) to.push_back(static_cast<T>(value));
  return to;
}

MappedType owned(MPI_Datatype type) {
  return {type, true, {}, false};
}

// How the elements of an array are dealt out to a grid of processes.
struct Dealing {
  bool fortran = false;
  std::vector<std::int64_t> sizes;
  std::vector<int> kinds;
  std::vector<int> arguments;
  std::vector<int> grid;

  void add(Dice& dice) {
    const int choices[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    const int kind = dice.pick(choices);
    sizes.push_back(dice.between(1, 7));
    kinds.push_back(kind);
    grid.push_back(kind == MPI_DISTRIBUTE_NONE ? 1 : static_cast<int>(dice.between(1, 3)));
    std::int64_t argument = MPI_DISTRIBUTE_DFLT_DARG;
    if (kind == MPI_DISTRIBUTE_BLOCK && dice.one_in(2))
      argument = even(sizes.size() - 1) + dice.between(0, 1);
    if (kind == MPI_DISTRIBUTE_CYCLIC && dice.one_in(2)) argument = dice.between(1, 3);
    arguments.push_back(static_cast<int>(argument));
  }
  // The shortest block that leaves no element over.
  [[nodiscard]] std::int64_t even(std::size_t d) const {
    return (sizes[d] + grid[d] - 1) / grid[d];
  }
  [[nodiscard]] std::int64_t block(std::size_t d) const {
    if (kinds[d] == MPI_DISTRIBUTE_NONE) return sizes[d];
    if (arguments[d] != MPI_DISTRIBUTE_DFLT_DARG) return arguments[d];
    return kinds[d] == MPI_DISTRIBUTE_BLOCK ? even(d) : 1;
  }
  // Processes are numbered row by row in both orders of the array.
  [[nodiscard]] int owner(std::int64_t element) const {
    std::vector<std::int64_t> position(sizes.size());
    for (std::size_t step = 0; step < sizes.size(); ++step) {
      const std::size_t d = fortran ? step : sizes.size() - 1 - step;
      position[d] = element % sizes[d] / block(d) % grid[d];
      element /= sizes[d];
    }
    std::int64_t rank = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) rank = rank * grid[d] + position[d];
    return static_cast<int>(rank);
  }
};

} // namespace

MappedType RandomTypes::leaf() {
  // No long double: MPI_Pack may leave out the bytes of it that are no part of the number.
  const Leaf leaves[] = {
      {MPI_CHAR, 1, 0},       {MPI_SHORT, 2, 0},     {MPI_INT, 4, 0},
      {MPI_DOUBLE, 8, 0},     {MPI_DOUBLE, 8, 0},    {MPI_C_DOUBLE_COMPLEX, 16, 0},

      {MPI_SHORT_INT, 2, 4},  {MPI_FLOAT_INT, 4, 4}, {MPI_2INT, 4, 4},
      {MPI_DOUBLE_INT, 8, 8}, {MPI_LONG_INT, 8, 8}};
  Leaf chosen = dice_.pick(leaves);
  if (dice_.one_in(20)) {
    chosen = {MPI_DATATYPE_NULL, 8, 0};
    MPI_Type_create_f90_real(12, MPI_UNDEFINED, &chosen.type);
  }
  MappedType made{chosen.type, false, {}, false};
  for (std::size_t i = 0; i < chosen.first; ++i) {
    made.places.push_back(static_cast<std::int64_t>(i));
  }
  for (std::size_t i = 0; chosen.second_at > 0 && i < sizeof(int); ++i) {
    made.places.push_back(static_cast<std::int64_t>(chosen.second_at + i));
  }
  return made;
}

MappedType RandomTypes::build(const MappedType& part) {
  const std::int64_t extent = extent_of(part.type);
  MappedType made = owned(MPI_DATATYPE_NULL);
  switch (small(1, kConstructors)) {
    case 1: {
      MPI_Type_dup(part.type, &made.type);
      made.places = part.places;
      return made;
    }
    case 2: {
      const int count = small(0, 5);
      if (large()) {
        MPI_Type_contiguous_c(count, part.type, &made.type);
      } else {
        MPI_Type_contiguous(count, part.type, &made.type);
      }
      for (int i = 0; i < count; ++i) add(made.places, part.places, i * extent);
      return made;
    }
    case 3:
      return vector(part, false);
    case 4:
      return vector(part, true);
    case 5:
      return indexed(part, false);
    case 6:
      return indexed(part, true);
    case 7:
      return indexed_block(part, false);
    case 8:
      return indexed_block(part, true);
    case 9:
      return structure(part);
    case 10:
      return subarray(part);
    case 11:
      return darray(part);
    default:
      return resized(part);
  }
}

MappedType RandomTypes::vector(const MappedType& part, bool in_bytes) {
  const std::int64_t extent = extent_of(part.type);
  const int count = small(0, 5);
  const int length = small(0, 4);
  int stride = dice_.one_in(3) ? length : small(-6, 9);
  if (in_bytes) stride = stride * static_cast<int>(extent) + (dice_.one_in(3) ? small(-9, 9) : 0);
  MappedType made = owned(MPI_DATATYPE_NULL);
  if (in_bytes && large()) {
    MPI_Type_create_hvector_c(count, length, stride, part.type, &made.type);
  } else if (in_bytes) {
    MPI_Type_create_hvector(count, length, stride, part.type, &made.type);
  } else if (large()) {
    MPI_Type_vector_c(count, length, stride, part.type, &made.type);
  } else {
    MPI_Type_vector(count, length, stride, part.type, &made.type);
  }
  const std::int64_t step = in_bytes ? stride : stride * extent;
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < length; ++k) add(made.places, part.places, i * step + k * extent);
  }
  return made;
}

MappedType RandomTypes::indexed(const MappedType& part, bool in_bytes) {
  const std::int64_t extent = extent_of(part.type);
  const int count = small(0, 6);
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> places;
  std::int64_t at = small(-8, 8);
  for (int i = 0; i < count; ++i) {
    lengths.push_back(small(0, 3));
    places.push_back(in_bytes ? at * extent + small(0, 1) * small(-5, 5) : at);
    at += dice_.one_in(2) ? lengths.back() : small(-4, 9);
  }
  MappedType made = owned(MPI_DATATYPE_NULL);
  const auto ints = converted<int>(lengths);
  const auto counts = converted<MPI_Count>(lengths);
  const auto wide = converted<MPI_Count>(places);
  if (in_bytes && large()) {
    MPI_Type_create_hindexed_c(count, counts.data(), wide.data(), part.type, &made.type);
  } else if (in_bytes) {
    const auto addresses = converted<MPI_Aint>(places);
    MPI_Type_create_hindexed(count, ints.data(), addresses.data(), part.type, &made.type);
  } else if (large()) {
    MPI_Type_indexed_c(count, counts.data(), wide.data(), part.type, &made.type);
  } else {
    MPI_Type_indexed(count, ints.data(), converted<int>(places).data(), part.type, &made.type);
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::int64_t k = 0; k < lengths[i]; ++k) {
      add(made.places, part.places, places[i] * (in_bytes ? 1 : extent) + k * extent);
    }
  }
  return made;
}

MappedType RandomTypes::indexed_block(const MappedType& part, bool in_bytes) {
  const std::int64_t extent = extent_of(part.type);
  const int count = small(0, 6);
  const int length = small(0, 3);
  std::vector<std::int64_t> places;
  for (int i = 0; i < count; ++i) places.push_back(small(-12, 12) * (in_bytes ? extent : 1));
  MappedType made = owned(MPI_DATATYPE_NULL);
  const auto wide = converted<MPI_Count>(places);
  if (in_bytes && large()) {
    MPI_Type_create_hindexed_block_c(count, length, wide.data(), part.type, &made.type);
  } else if (in_bytes) {
    const auto addresses = converted<MPI_Aint>(places);
    MPI_Type_create_hindexed_block(count, length, addresses.data(), part.type, &made.type);
  } else if (large()) {
    MPI_Type_create_indexed_block_c(count, length, wide.data(), part.type, &made.type);
  } else {
    const auto ints = converted<int>(places);
    MPI_Type_create_indexed_block(count, length, ints.data(), part.type, &made.type);
  }
  for (const std::int64_t place : places) {
    for (int k = 0; k < length; ++k) {
      add(made.places, part.places, place * (in_bytes ? 1 : extent) + k * extent);
    }
  }
  return made;
}

MappedType RandomTypes::structure(const MappedType& part) {
  const int count = small(0, 4);
  std::vector<MappedType> members;
  std::vector<MPI_Datatype> types;
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> places;
  std::int64_t at = small(-16, 16);
  MappedType made = owned(MPI_DATATYPE_NULL);
  for (int i = 0; i < count; ++i) {
    members.push_back(dice_.one_in(2) ? part : leaf());
    const std::int64_t extent = extent_of(members.back().type);
    types.push_back(members.back().type);
    lengths.push_back(small(0, 3));
    places.push_back(at);
    for (std::int64_t k = 0; k < lengths.back(); ++k) {
      add(made.places, members.back().places, at + k * extent);
    }
    at += dice_.one_in(2) ? lengths.back() * extent : small(-20, 60);
  }
  if (large()) {
    MPI_Type_create_struct_c(
        count, converted<MPI_Count>(lengths).data(), converted<MPI_Count>(places).data(),
        types.data(), &made.type);
  } else {
    MPI_Type_create_struct(
        count, converted<int>(lengths).data(), converted<MPI_Aint>(places).data(), types.data(),
        &made.type);
  }
  return made;
}

MappedType RandomTypes::subarray(const MappedType& part) {
  const std::int64_t extent = extent_of(part.type);
  const int dimensions = small(1, 3);
  const bool fortran = dice_.one_in(2);
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> starts;
  std::int64_t elements = 1;
  for (int d = 0; d < dimensions; ++d) {
    sizes.push_back(small(1, 6));
    lengths.push_back(dice_.between(1, sizes.back()));
    starts.push_back(dice_.between(0, sizes.back() - lengths.back()));
    elements *= sizes.back();
  }
  MappedType made = owned(MPI_DATATYPE_NULL);
  const int order = fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
  if (large()) {
    MPI_Type_create_subarray_c(
        dimensions, converted<MPI_Count>(sizes).data(), converted<MPI_Count>(lengths).data(),
        converted<MPI_Count>(starts).data(), order, part.type, &made.type);
  } else {
    MPI_Type_create_subarray(
        dimensions, converted<int>(sizes).data(), converted<int>(lengths).data(),
        converted<int>(starts).data(), order, part.type, &made.type);
  }
  // Every element of the array in the order of memory: is it inside?
  for (std::int64_t element = 0; element < elements; ++element) {
    std::int64_t rest = element;
    bool inside = true;
    for (int step = 0; step < dimensions; ++step) {
      const auto d = static_cast<std::size_t>(fortran ? step : dimensions - 1 - step);
      const std::int64_t index = rest % sizes[d];
      rest /= sizes[d];
      inside = inside && index >= starts[d] && index < starts[d] + lengths[d];
    }
    if (inside) add(made.places, part.places, element * extent);
  }
  return made;
}

MappedType RandomTypes::darray(const MappedType& part) {
  const std::int64_t extent = extent_of(part.type);
  const int dimensions = small(1, 3);
  Dealing dealing;
  dealing.fortran = dice_.one_in(2);
  std::int64_t elements = 1;
  int ranks = 1;
  for (int d = 0; d < dimensions; ++d) {
    dealing.add(dice_);
    elements *= dealing.sizes.back();
    ranks *= dealing.grid.back();
  }
  const int rank = small(0, ranks - 1);
  MappedType made = owned(MPI_DATATYPE_NULL);
  const int order = dealing.fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
  if (large()) {
    MPI_Type_create_darray_c(
        ranks, rank, dimensions, converted<MPI_Count>(dealing.sizes).data(), dealing.kinds.data(),
        dealing.arguments.data(), dealing.grid.data(), order, part.type, &made.type);
  } else {
    MPI_Type_create_darray(
        ranks, rank, dimensions, converted<int>(dealing.sizes).data(), dealing.kinds.data(),
        dealing.arguments.data(), dealing.grid.data(), order, part.type, &made.type);
  }
  // Every element of the array in the order of memory: whose is it?
  for (std::int64_t element = 0; element < elements; ++element) {
    if (dealing.owner(element) == rank) add(made.places, part.places, element * extent);
  }
  return made;
}

MappedType RandomTypes::resized(const MappedType& part) {
  const std::int64_t extent = extent_of(part.type);
  const std::int64_t lower = small(-20, 20);
  const std::int64_t wanted = dice_.one_in(2) ? extent + small(0, 24) : small(-40, 80);
  MappedType made = owned(MPI_DATATYPE_NULL);
  made.places = part.places;
  if (large()) {
    MPI_Type_create_resized_c(part.type, lower, wanted, &made.type);
  } else {
    MPI_Type_create_resized(part.type, lower, wanted, &made.type);
  }
  return made;
}

} // namespace ferry::test
