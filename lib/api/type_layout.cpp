// SPDX-License-Identifier: MIT
#include "lib/api/type_layout.hpp"

#include <fmt/format.h>
#include <array>
#include <memory>
#include <mutex>
#include <utility>

#include "lib/api/flatten.hpp"
#include "lib/base/error.hpp"

namespace ferry::core {
namespace {

// What is kept of a type.
struct FlatType {
  std::uint64_t bytes = 0;
  std::int64_t extent = 0;
  bool one_piece = true;
  std::shared_ptr<const TypeMap> map;

  [[nodiscard]] bool dense() const {
    return one_piece && extent == static_cast<std::int64_t>(bytes);
  }
};

FlatType flat_type(MPI_Datatype type) {
  MPI_Count size = 0;
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  PMPI_Type_size_x(type, &size);
  PMPI_Type_get_extent_x(type, &lower, &extent);
  Pieces pieces = flatten(type);
  const bool one_piece = pieces.one_piece();
  return {static_cast<std::uint64_t>(size), extent, one_piece, std::move(pieces).map()};
}

Layout layout_of_flat(const FlatType& flat, std::uint64_t count) {
  Layout layout{count, flat.bytes, flat.extent, 0, nullptr};
  if (layout.bytes() == 0) return layout;
  if (flat.one_piece && (count == 1 || flat.dense())) {
    layout.offset = flat.map->lower;
  } else {
    layout.map = flat.map;
  }
  return layout;
}

// MPI has no question for this; packing no elements is refused for a type that is not committed.
bool is_committed(MPI_Comm comm, MPI_Datatype type) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(comm, &handler);
  PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  char nothing = 0;
  int position = 0;
  const int code = PMPI_Pack(&nothing, 0, type, &nothing, 0, &position, comm);
  PMPI_Comm_set_errhandler(comm, handler);
  PMPI_Errhandler_free(&handler);
  return code == MPI_SUCCESS;
}

// Predefined types live as long as MPI and never change; a few of them make up nearly all calls.
struct KnownType {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  FlatType flat;
};

KnownType& known_type(MPI_Datatype type) {
  constexpr std::size_t kKnown = 64;
  thread_local std::array<KnownType, kKnown> known;
  return known[static_cast<std::size_t>(MPI_Type_c2f(type)) % kKnown];
}

int delete_flat(MPI_Datatype, int, void* value, void*) {
  delete static_cast<FlatType*>(value);
  return MPI_SUCCESS;
}

// A duplicate starts without: its flat type is made anew when it is used.
int keyval() {
  static const int value = [] {
    int made = MPI_KEYVAL_INVALID;
    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_flat, &made, nullptr);
    return made;
  }();
  return value;
}

const FlatType* find_flat(MPI_Datatype type) {
  void* value = nullptr;
  int found = 0;
  PMPI_Type_get_attr(type, keyval(), &value, &found);
  return found != 0 ? static_cast<const FlatType*>(value) : nullptr;
}

// Once set it stays as long as the type, so the look-up before needs no lock.
const FlatType& keep_flat(MPI_Datatype type) {
  auto flat = std::make_unique<FlatType>(flat_type(type));
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  if (const FlatType* other = find_flat(type)) return *other;
  PMPI_Type_set_attr(type, keyval(), flat.get());
  return *flat.release();
}

} // namespace

Layout type_layout(MPI_Comm comm, MPI_Count count, MPI_Datatype type, const char* what) {
  if (count < 0) {
    throw Failure(
        ErrorKind::count, fmt::format("the count of {} is {}", what, count), "pass 0 or more");
  }
  if (type == MPI_DATATYPE_NULL) {
    if (count == 0) return {};
    throw Failure(
        ErrorKind::type, fmt::format("the type of {} is MPI_DATATYPE_NULL", what), "pass a type");
  }
  const auto elements = static_cast<std::uint64_t>(count);
  KnownType& known = known_type(type);
  if (known.type == type) return layout_of_flat(known.flat, elements);
  if (const FlatType* flat = find_flat(type)) return layout_of_flat(*flat, elements);
  if (is_predefined(type)) {
    known = {type, flat_type(type)};
    return layout_of_flat(known.flat, elements);
  }
  if (!is_committed(comm, type)) {
    throw Failure(
        ErrorKind::type, fmt::format("the type of {} is not committed", what),
        "call MPI_Type_commit first");
  }
  return layout_of_flat(keep_flat(type), elements);
}

} // namespace ferry::core
