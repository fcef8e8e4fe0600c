// SPDX-License-Identifier: MIT
#pragma once

// How the lanes of a scope copy together: side by side, 16 bytes each, past the caches. Where the
// two ends do not agree modulo 16 they go by what they agree in: 4 bytes or one.

#include <cstdint>

#include "platform.hpp"
#include "scope.hpp"

namespace ferry::device {

namespace detail {

struct __attribute__((may_alias)) Dword {
  std::uint32_t word;
};

FERRY_DEVICE_FN Dword load_stream(const Dword* p) {
  return *p;
}

FERRY_DEVICE_FN void store_stream(Dword* p, const Dword& value) {
  *p = value;
}

FERRY_DEVICE_FN char load_stream(const char* p) {
  return *p;
}

FERRY_DEVICE_FN void store_stream(char* p, char value) {
  *p = value;
}

// How many loads a lane has under way.
inline constexpr std::uint64_t kLoadsAhead = 4;

template <class Unit, class Scope>
FERRY_DEVICE_FN void copy_units(
    Unit* to, const Unit* from, std::uint64_t units, const Scope& scope) {
  const std::uint64_t step = scope.size();
  std::uint64_t i = scope.rank();
  for (; i + (kLoadsAhead - 1) * step < units; i += kLoadsAhead * step) {
    Unit held[kLoadsAhead];
    for (std::uint64_t k = 0; k < kLoadsAhead; ++k) held[k] = load_stream(from + i + k * step);
    for (std::uint64_t k = 0; k < kLoadsAhead; ++k) store_stream(to + i + k * step, held[k]);
  }
  for (; i < units; i += step) store_stream(to + i, load_stream(from + i));
}

// Bytes up to the first boundary of a Unit, Units, and the bytes that remain.
template <class Unit, class Scope>
FERRY_DEVICE_FN void copy_aligned(
    char* to, const char* from, std::uint64_t bytes, const Scope& scope) {
  std::uint64_t head = (0 - reinterpret_cast<std::uint64_t>(to)) % sizeof(Unit);
  if (head > bytes) head = bytes;
  const std::uint64_t units = (bytes - head) / sizeof(Unit);
  const std::uint64_t done = head + units * sizeof(Unit);
  copy_units(to, from, head, scope);
  copy_units(
      reinterpret_cast<Unit*>(to + head), reinterpret_cast<const Unit*>(from + head), units, scope);
  copy_units(to + done, from + done, bytes - done, scope);
}

} // namespace detail

// The ranges do not overlap. Orders nothing: sync() of the scope, then a release by its leader,
// make the copy visible to others.
template <class Scope>
FERRY_DEVICE_FN void copy_wide(
    void* to, const void* from, std::uint64_t bytes, const Scope& scope) {
  char* const destination = static_cast<char*>(to);
  const char* const source = static_cast<const char*>(from);
  const std::uint64_t apart =
      reinterpret_cast<std::uint64_t>(to) - reinterpret_cast<std::uint64_t>(from);
  if (apart % sizeof(Vec16) == 0) {
    detail::copy_aligned<Vec16>(destination, source, bytes, scope);
  } else if (apart % sizeof(detail::Dword) == 0) {
    detail::copy_aligned<detail::Dword>(destination, source, bytes, scope);
  } else {
    detail::copy_units(destination, source, bytes, scope);
  }
}

} // namespace ferry::device
