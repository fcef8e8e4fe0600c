// SPDX-License-Identifier: MIT
#pragma once

// How a thread of the host moves bytes. Three ways by size; where the compiler or processor offers
// only one, memcpy.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && !defined(__HIP__) && !defined(__CUDACC__)
#define FERRY_COPY_X86 1
#include <immintrin.h>
#endif

namespace ferry::device {

// The sizes from which on the second and the third way are quicker.
struct CopyLimits {
  std::size_t rep_from = std::size_t{4} << 10;
  std::size_t stream_from = std::size_t{16} << 20;
};

namespace detail {

inline std::atomic<std::size_t> copy_rep_from{CopyLimits{}.rep_from};
inline std::atomic<std::size_t> copy_stream_from{CopyLimits{}.stream_from};

} // namespace detail

// For the whole process; the library sets what its table says. Bytes move right at any value.
inline void set_copy_limits(const CopyLimits& limits) {
  detail::copy_rep_from.store(limits.rep_from, std::memory_order_relaxed);
  detail::copy_stream_from.store(limits.stream_from, std::memory_order_relaxed);
}

#if defined(FERRY_COPY_X86)

namespace detail {

inline void copy_rep(void* destination, const void* source, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(destination), "+S"(source), "+c"(bytes)::"memory");
}

// Whole cache lines past the caches; `to` is aligned to a line. Stores of a line at once are up to
// four times as quick as those of a quarter.
__attribute__((target("avx512f"))) inline void stream_wide(
    char* to, const char* from, std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i, to += 64, from += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
}

inline void stream_narrow(char* to, const char* from, std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i, to += 64, from += 64) {
    for (int j = 0; j < 64; j += 16) {
      const __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + j));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + j), value);
    }
  }
}

// Past the caches: the destination is larger than what a reader would find there. The fence orders
// these stores before a signal that follows.
inline void copy_stream(void* destination, const void* source, std::size_t bytes) {
  static const bool wide = __builtin_cpu_supports("avx512f") != 0;
  char* to = static_cast<char*>(destination);
  const char* from = static_cast<const char*>(source);
  const std::size_t head = std::min((64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64, bytes);
  std::memcpy(to, from, head);
  to += head;
  from += head;
  const std::size_t lines = (bytes - head) / 64;
  if (wide) {
    stream_wide(to, from, lines);
  } else {
    stream_narrow(to, from, lines);
  }
  const std::size_t done = lines * 64;
  std::memcpy(to + done, from + done, bytes - head - done);
  _mm_sfence();
}

} // namespace detail

#endif

// The ranges do not overlap. What was copied is visible to whoever acquires a later release.
inline void copy_bytes(void* destination, const void* source, std::size_t bytes) {
#if defined(FERRY_COPY_X86)
  if (bytes >= detail::copy_stream_from.load(std::memory_order_relaxed)) {
    return detail::copy_stream(destination, source, bytes);
  }
  if (bytes >= detail::copy_rep_from.load(std::memory_order_relaxed)) {
    return detail::copy_rep(destination, source, bytes);
  }
#endif
  std::memcpy(destination, source, bytes);
}

} // namespace ferry::device

#undef FERRY_COPY_X86
