// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <array>
#include <vector>

#include "lib/api/describe_call.hpp"
#include "lib/base/error.hpp"

namespace ferry::core {
namespace {

// The type that a duplicate or a contiguous run is made of; MPI_DATATYPE_NULL for other makers.
MPI_Datatype element_of(MPI_Datatype type, int combiner, int integers, int types) {
  if (combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS) return MPI_DATATYPE_NULL;
  std::vector<int> numbers(static_cast<std::size_t>(integers) + 1);
  std::vector<MPI_Aint> addresses(1);
  std::vector<MPI_Datatype> parts(static_cast<std::size_t>(types));
  PMPI_Type_get_contents(type, integers, 0, types, numbers.data(), addresses.data(), parts.data());
  return parts.front();
}

void release(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  if (combiner != MPI_COMBINER_NAMED) PMPI_Type_free(&type);
}

// Bytes of one element lie side by side, in order, from offset 0.
bool is_contiguous(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  MPI_Count size = 0;
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  PMPI_Type_size_x(type, &size);
  PMPI_Type_get_extent_x(type, &lower, &extent);
  if (lower != 0 || size != extent) return false;
  if (combiner == MPI_COMBINER_NAMED) return true;
  const MPI_Datatype part = element_of(type, combiner, integers, types);
  if (part == MPI_DATATYPE_NULL) return size == 0;
  const bool contiguous = is_contiguous(part);
  release(part);
  return contiguous;
}

bool is_predefined(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  return combiner == MPI_COMBINER_NAMED;
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
  std::uint64_t bytes = 0;
};

KnownType& known_type(MPI_Datatype type) {
  constexpr std::size_t kKnown = 64;
  thread_local std::array<KnownType, kKnown> known;
  return known[static_cast<std::size_t>(MPI_Type_c2f(type)) % kKnown];
}

Layout contiguous_layout(std::uint64_t count, std::uint64_t bytes) {
  return {count, bytes, static_cast<std::int64_t>(bytes), true};
}

} // namespace

Layout layout_of(MPI_Comm comm, MPI_Count count, MPI_Datatype type, const char* what) {
  if (count < 0) {
    throw Failure(
        ErrorKind::count, fmt::format("the count of {} is {}", what, count), "pass 0 or more");
  }
  if (type == MPI_DATATYPE_NULL) {
    if (count == 0) return {};
    throw Failure(
        ErrorKind::type, fmt::format("the type of {} is MPI_DATATYPE_NULL", what), "pass a type");
  }
  KnownType& known = known_type(type);
  if (known.type == type) return contiguous_layout(static_cast<std::uint64_t>(count), known.bytes);
  const bool predefined = is_predefined(type);
  if (!predefined && !is_committed(comm, type)) {
    throw Failure(
        ErrorKind::type, fmt::format("the type of {} is not committed", what),
        "call MPI_Type_commit first");
  }
  if (count > 0 && !is_contiguous(type)) {
    throw Failure(
        ErrorKind::type, fmt::format("the type of {} has gaps or another order", what),
        "pack it with MPI_Pack, or use the collective of MPI; only contiguous types are supported");
  }
  MPI_Count size = 0;
  PMPI_Type_size_x(type, &size);
  const auto bytes = static_cast<std::uint64_t>(size);
  if (predefined && is_contiguous(type)) known = {type, bytes};
  return contiguous_layout(static_cast<std::uint64_t>(count), bytes);
}

} // namespace ferry::core
