// SPDX-License-Identifier: MIT
// What may travel through ferry.hpp: element types, buffers, and how MPI is told about them.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <ranges>
#include <type_traits>

#include <mpi.h>

namespace ferry {

/// Element types that may travel: copied byte by byte, and meaningful in another process.
template <class T>
concept Element =
    std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_member_pointer_v<T>;

namespace detail {

// The element type of a buffer, const kept.
template <class R>
using ElementOf = std::remove_reference_t<std::ranges::range_reference_t<R>>;

template <class T>
using Tag = std::type_identity<T>;

// How an element is told to MPI; what has no MPI datatype is sizeof(T) items of MPI_BYTE.
struct Wire {
  template <class T>
  static MPI_Datatype type(Tag<T>) {
    return MPI_BYTE;
  }
  static MPI_Datatype type(Tag<char>) { return MPI_CHAR; }
  static MPI_Datatype type(Tag<signed char>) { return MPI_SIGNED_CHAR; }
  static MPI_Datatype type(Tag<unsigned char>) { return MPI_UNSIGNED_CHAR; }
  static MPI_Datatype type(Tag<wchar_t>) { return MPI_WCHAR; }
  static MPI_Datatype type(Tag<bool>) { return MPI_C_BOOL; }
  static MPI_Datatype type(Tag<short>) { return MPI_SHORT; }
  static MPI_Datatype type(Tag<unsigned short>) { return MPI_UNSIGNED_SHORT; }
  static MPI_Datatype type(Tag<int>) { return MPI_INT; }
  static MPI_Datatype type(Tag<unsigned>) { return MPI_UNSIGNED; }
  static MPI_Datatype type(Tag<long>) { return MPI_LONG; }
  static MPI_Datatype type(Tag<unsigned long>) { return MPI_UNSIGNED_LONG; }
  static MPI_Datatype type(Tag<long long>) { return MPI_LONG_LONG; }
  static MPI_Datatype type(Tag<unsigned long long>) { return MPI_UNSIGNED_LONG_LONG; }
  static MPI_Datatype type(Tag<float>) { return MPI_FLOAT; }
  static MPI_Datatype type(Tag<double>) { return MPI_DOUBLE; }
  static MPI_Datatype type(Tag<long double>) { return MPI_LONG_DOUBLE; }
  static MPI_Datatype type(Tag<std::complex<float>>) { return MPI_C_FLOAT_COMPLEX; }
  static MPI_Datatype type(Tag<std::complex<double>>) { return MPI_C_DOUBLE_COMPLEX; }
  static MPI_Datatype type(Tag<std::complex<long double>>) { return MPI_C_LONG_DOUBLE_COMPLEX; }
};

template <class T>
[[nodiscard]] MPI_Count items(std::size_t elements) {
  const bool as_bytes = Wire::type(Tag<T>{}) == MPI_BYTE;
  return static_cast<MPI_Count>(elements * (as_bytes ? sizeof(T) : 1));
}

} // namespace detail

/// A buffer to send from. A temporary must be a view (std::span): its memory outlives the call.
template <class R>
concept SendBuffer = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::ranges::borrowed_range<R> && Element<std::ranges::range_value_t<R>>;

/// A buffer to receive into: like SendBuffer, and writable.
template <class R>
concept RecvBuffer = SendBuffer<R> && !std::is_const_v<detail::ElementOf<R>>;

/// A buffer for what was sent from an S: a RecvBuffer of the same element type.
template <class R, class S>
concept RecvBufferFor = RecvBuffer<R> && SendBuffer<S> &&
    std::same_as<std::ranges::range_value_t<R>, std::ranges::range_value_t<S>>;

} // namespace ferry
