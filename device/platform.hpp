// SPDX-License-Identifier: MIT
#pragma once

// The file, with scope.hpp for its lanes, that asks which compiler this is. All else is written
// once, with the operations below: 32 and 64-bit words, always at system scope: the other side of a
// word may be another process, another GPU or a copy engine.

#include <cstdint>

#if defined(__HIP__)
// Attributes instead of __host__ __device__: these headers then compile without the HIP runtime.
#define FERRY_DEVICE_FN __attribute__((host)) __attribute__((device)) inline
#elif defined(__CUDACC__)
#define FERRY_DEVICE_FN __host__ __device__ inline
#else
#define FERRY_DEVICE_FN inline
#endif

namespace ferry::device {

// What a lane loads and stores at once when it copies.
struct __attribute__((may_alias, aligned(16))) Vec16 {
  std::uint32_t words[4];
};

#if defined(__HIP_DEVICE_COMPILE__)

// The explicit wait is not redundant: compilers up to clang 22 drop the wait for the L2 write-back
// behind a release fence, so that a following flag could overtake the data.
FERRY_DEVICE_FN void release_fence() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
  __builtin_amdgcn_s_waitcnt(0);
}

FERRY_DEVICE_FN void cpu_relax() {
  __builtin_amdgcn_s_sleep(1);
}

template <class Word>
FERRY_DEVICE_FN Word load_relaxed(const Word* p) {
  return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}

template <class Word>
FERRY_DEVICE_FN Word load_acquire(const Word* p) {
  return __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}

template <class Word>
FERRY_DEVICE_FN void store_relaxed(Word* p, Word value) {
  __hip_atomic_store(p, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}

template <class Word>
FERRY_DEVICE_FN void store_release(Word* p, Word value) {
  release_fence();
  store_relaxed(p, value);
}

template <class Word>
FERRY_DEVICE_FN Word fetch_add(Word* p, Word value) {
  release_fence();
  return __hip_atomic_fetch_add(p, value, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}

template <class Word>
FERRY_DEVICE_FN Word fetch_add_relaxed(Word* p, Word value) {
  return __hip_atomic_fetch_add(p, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}

template <class Word>
FERRY_DEVICE_FN bool cas(Word* p, Word& expected, Word desired) {
  release_fence();
  return __hip_atomic_compare_exchange_strong(
      p, &expected, desired, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}

namespace detail {
using FourWords = std::uint32_t __attribute__((ext_vector_type(4), may_alias));
}

// A load of one address by all lanes would become a scalar one, which sees no other agent's stores.
FERRY_DEVICE_FN Vec16 load_stream(const Vec16* p) {
  return __builtin_bit_cast(
      Vec16, __builtin_nontemporal_load(reinterpret_cast<const detail::FourWords*>(p)));
}

FERRY_DEVICE_FN void store_stream(Vec16* p, const Vec16& value) {
  __builtin_nontemporal_store(
      __builtin_bit_cast(detail::FourWords, value), reinterpret_cast<detail::FourWords*>(p));
}

#elif defined(__CUDA_ARCH__)

FERRY_DEVICE_FN void release_fence() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}

FERRY_DEVICE_FN void cpu_relax() {
  __nanosleep(20);
}

FERRY_DEVICE_FN std::uint32_t load_relaxed(const std::uint32_t* p) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}

FERRY_DEVICE_FN std::uint64_t load_relaxed(const std::uint64_t* p) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}

FERRY_DEVICE_FN std::uint32_t load_acquire(const std::uint32_t* p) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}

FERRY_DEVICE_FN std::uint64_t load_acquire(const std::uint64_t* p) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}

FERRY_DEVICE_FN void store_relaxed(std::uint32_t* p, std::uint32_t value) {
  asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

FERRY_DEVICE_FN void store_relaxed(std::uint64_t* p, std::uint64_t value) {
  asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

FERRY_DEVICE_FN void store_release(std::uint32_t* p, std::uint32_t value) {
  asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

FERRY_DEVICE_FN void store_release(std::uint64_t* p, std::uint64_t value) {
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

FERRY_DEVICE_FN std::uint32_t fetch_add(std::uint32_t* p, std::uint32_t value) {
  std::uint32_t old;
  asm volatile("atom.add.acq_rel.sys.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(p), "r"(value)
               : "memory");
  return old;
}

FERRY_DEVICE_FN std::uint64_t fetch_add(std::uint64_t* p, std::uint64_t value) {
  std::uint64_t old;
  asm volatile("atom.add.acq_rel.sys.u64 %0, [%1], %2;"
               : "=l"(old)
               : "l"(p), "l"(value)
               : "memory");
  return old;
}

FERRY_DEVICE_FN std::uint64_t fetch_add_relaxed(std::uint64_t* p, std::uint64_t value) {
  std::uint64_t old;
  asm volatile("atom.add.relaxed.sys.u64 %0, [%1], %2;"
               : "=l"(old)
               : "l"(p), "l"(value)
               : "memory");
  return old;
}

FERRY_DEVICE_FN bool cas(std::uint32_t* p, std::uint32_t& expected, std::uint32_t desired) {
  const std::uint32_t before = expected;
  asm volatile("atom.cas.acq_rel.sys.b32 %0, [%1], %2, %3;"
               : "=r"(expected)
               : "l"(p), "r"(before), "r"(desired)
               : "memory");
  return expected == before;
}

FERRY_DEVICE_FN bool cas(std::uint64_t* p, std::uint64_t& expected, std::uint64_t desired) {
  const std::uint64_t before = expected;
  asm volatile("atom.cas.acq_rel.sys.b64 %0, [%1], %2, %3;"
               : "=l"(expected)
               : "l"(p), "l"(before), "l"(desired)
               : "memory");
  return expected == before;
}

FERRY_DEVICE_FN Vec16 load_stream(const Vec16* p) {
  Vec16 value;
  asm volatile("ld.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.words[0]), "=r"(value.words[1]), "=r"(value.words[2]),
                 "=r"(value.words[3])
               : "l"(p)
               : "memory");
  return value;
}

FERRY_DEVICE_FN void store_stream(Vec16* p, const Vec16& value) {
  asm volatile("st.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(value.words[0]),
               "r"(value.words[1]), "r"(value.words[2]), "r"(value.words[3])
               : "memory");
}

#else

FERRY_DEVICE_FN void release_fence() {
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

FERRY_DEVICE_FN void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#else
  asm volatile("" ::: "memory");
#endif
}

template <class Word>
FERRY_DEVICE_FN Word load_relaxed(const Word* p) {
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}

template <class Word>
FERRY_DEVICE_FN Word load_acquire(const Word* p) {
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

template <class Word>
FERRY_DEVICE_FN void store_relaxed(Word* p, Word value) {
  __atomic_store_n(p, value, __ATOMIC_RELAXED);
}

template <class Word>
FERRY_DEVICE_FN void store_release(Word* p, Word value) {
  __atomic_store_n(p, value, __ATOMIC_RELEASE);
}

// Acquire and release. Returns the value before.
template <class Word>
FERRY_DEVICE_FN Word fetch_add(Word* p, Word value) {
  return __atomic_fetch_add(p, value, __ATOMIC_ACQ_REL);
}

// Orders nothing.
template <class Word>
FERRY_DEVICE_FN Word fetch_add_relaxed(Word* p, Word value) {
  return __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
}

// Acquire and release. On failure `expected` becomes the value found.
template <class Word>
FERRY_DEVICE_FN bool cas(Word* p, Word& expected, Word desired) {
  return __atomic_compare_exchange_n(
      p, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

// Of data that is not looked at again soon: past the caches, where the compiler offers that. No
// atomics: others must not write it meanwhile.
FERRY_DEVICE_FN Vec16 load_stream(const Vec16* p) {
  return *p;
}

FERRY_DEVICE_FN void store_stream(Vec16* p, const Vec16& value) {
  *p = value;
}

// Ask for a cache line that will be written soon, while another core may hold it.
inline void prefetch_for_write([[maybe_unused]] const void* p) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(p)));
#endif
}

// Hint that another core will read this line next: it moves from the own cache to the shared one.
// Does nothing on processors that do not know it.
inline void demote_line([[maybe_unused]] const void* p) {
#if defined(__x86_64__)
  asm volatile(".byte 0x0f, 0x1c, 0x00" : : "a"(p) : "memory"); // cldemote (%rax)
#endif
}

#endif

} // namespace ferry::device
