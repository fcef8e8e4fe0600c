// SPDX-License-Identifier: MIT
#include "lib/memory/every_other.hpp"

#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define FERRY_PICK_X86 1
#include <immintrin.h>
#endif

namespace ferry::core {

#if defined(FERRY_PICK_X86)

namespace {

constexpr std::uint64_t kAtOnce = 8; // words of one vector
constexpr std::uint64_t kFrom = 16; // words; fewer are moved one by one as quickly
constexpr __mmask8 kAll = 0xff;
constexpr __mmask8 kEven = 0x55;
constexpr __mmask8 kOdd = 0xaa;

bool can_pick() {
  static const bool can = __builtin_cpu_supports("avx512f") != 0;
  return can;
}

// A vector of spread data lies in one cache line, so it begins one word early where that is what
// the alignment asks for: its mask then takes the odd words.
struct Start {
  std::uint64_t head = 0; // words that are moved one by one before the first vector
  bool odd = false;
};

Start start_of(const std::byte* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (address % 8 != 0) return {};
  return {(4 - address % 64 / 16) % 4, address % 16 == 8};
}

__attribute__((target("avx512f"))) void pack_vectors(
    const std::byte* data, std::uint64_t vectors, bool odd, std::byte* packed) {
  const __mmask8 mask = odd ? kOdd : kEven;
  const __m512i first = _mm512_set1_epi64(odd ? 1 : 0);
  const __m512i order = _mm512_or_si512(first, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14));
  for (std::uint64_t i = 0; i < vectors; ++i, data += 128, packed += 64) {
    const __m512i low = _mm512_maskz_loadu_epi64(mask, data);
    const __m512i high = _mm512_maskz_loadu_epi64(mask, data + 64);
    _mm512_storeu_si512(packed, _mm512_permutex2var_epi64(low, order, high));
  }
}

__attribute__((target("avx512f"))) void unpack_vectors(
    std::byte* data, std::uint64_t vectors, bool odd, const std::byte* packed) {
  const __mmask8 mask = odd ? kOdd : kEven;
  const __m512i low = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
  const __m512i high = _mm512_setr_epi64(4, 4, 5, 5, 6, 6, 7, 7);
  for (std::uint64_t i = 0; i < vectors; ++i, data += 128, packed += 64) {
    const __m512i words = _mm512_loadu_si512(packed);
    _mm512_mask_storeu_epi64(data, mask, _mm512_maskz_permutexvar_epi64(kAll, low, words));
    _mm512_mask_storeu_epi64(data + 64, mask, _mm512_maskz_permutexvar_epi64(kAll, high, words));
  }
}

} // namespace

std::uint64_t pack_every_other(const std::byte* data, std::uint64_t words, std::byte* packed) {
  if (words < kFrom || !can_pick()) return 0;
  const Start start = start_of(data);
  for (std::uint64_t i = 0; i < start.head; ++i) std::memcpy(packed + 8 * i, data + 16 * i, 8);
  const std::uint64_t vectors = (words - start.head) / kAtOnce;
  const std::byte* from = data + 16 * start.head - (start.odd ? 8 : 0);
  pack_vectors(from, vectors, start.odd, packed + 8 * start.head);
  return start.head + vectors * kAtOnce;
}

std::uint64_t unpack_every_other(std::byte* data, std::uint64_t words, const std::byte* packed) {
  if (words < kFrom || !can_pick()) return 0;
  const Start start = start_of(data);
  for (std::uint64_t i = 0; i < start.head; ++i) std::memcpy(data + 16 * i, packed + 8 * i, 8);
  const std::uint64_t vectors = (words - start.head) / kAtOnce;
  std::byte* to = data + 16 * start.head - (start.odd ? 8 : 0);
  unpack_vectors(to, vectors, start.odd, packed + 8 * start.head);
  return start.head + vectors * kAtOnce;
}

#else

std::uint64_t pack_every_other(const std::byte*, std::uint64_t, std::byte*) {
  return 0;
}

std::uint64_t unpack_every_other(std::byte*, std::uint64_t, const std::byte*) {
  return 0;
}

#endif

} // namespace ferry::core
