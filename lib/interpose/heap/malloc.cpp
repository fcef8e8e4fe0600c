// SPDX-License-Identifier: MIT
// The malloc family of the program: large blocks from the shared heap, all else from the C library.
// operator new of C++ ends here as well.
#include <dlfcn.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "include/ferry/ferry.h"
#include "lib/interpose/heap/large_blocks.hpp"

extern "C" {
// The same functions of glibc under names that nobody stands in front of; to look them up by dlsym
// would allocate.
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);
}

namespace {

using ferry::interpose::LargeBlocks;

constinit LargeBlocks blocks;

// Behind the constructors of the libraries below, before those of the program.
__attribute__((constructor)) void enable() {
  blocks.enable();
}

size_t libc_size(void* block) {
  static const auto size =
      reinterpret_cast<size_t (*)(void*)>(dlsym(RTLD_NEXT, "malloc_usable_size"));
  return size(block);
}

void* aligned(size_t alignment, size_t bytes) {
  if (alignment <= LargeBlocks::kPage) {
    if (void* block = blocks.allocate(bytes).block; block != nullptr) return block;
  }
  return __libc_memalign(alignment, bytes);
}

// A block that grows is likely to grow again, and cannot be moved without a copy here.
size_t with_room(size_t bytes, size_t before) {
  return bytes > before && before >= LargeBlocks::kSmallest ? bytes + bytes / 4 : bytes;
}

void* move_to(void* to, void* from, size_t bytes) {
  if (to == nullptr) return nullptr;
  std::memcpy(to, from, bytes);
  free(from);
  return to;
}

void* realloc_shared(void* block, size_t bytes) {
  const size_t before = blocks.size_of(block);
  if (bytes <= before && bytes >= before / 2 && bytes >= LargeBlocks::kSmallest) return block;
  void* moved = blocks.allocate(with_room(bytes, before)).block;
  if (moved == nullptr) moved = __libc_malloc(bytes);
  return move_to(moved, block, bytes < before ? bytes : before);
}

void* realloc_libc(void* block, size_t bytes) {
  const size_t before = libc_size(block);
  void* moved = bytes > before ? blocks.allocate(bytes).block : nullptr;
  return moved != nullptr ? move_to(moved, block, before) : __libc_realloc(block, bytes);
}

bool is_power_of_two(size_t number) {
  return number != 0 && (number & (number - 1)) == 0;
}

} // namespace

extern "C" {

FERRY_API void* malloc(size_t bytes) {
  if (bytes < LargeBlocks::kSmallest) return __libc_malloc(bytes);
  void* block = blocks.allocate(bytes).block;
  return block != nullptr ? block : __libc_malloc(bytes);
}

FERRY_API void free(void* block) {
  if (blocks.owns(block)) {
    blocks.release(block);
  } else {
    __libc_free(block);
  }
}

FERRY_API void* calloc(size_t count, size_t bytes) {
  size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total) || total < LargeBlocks::kSmallest) {
    return __libc_calloc(count, bytes);
  }
  const LargeBlocks::Allocation made = blocks.allocate(total);
  if (made.block == nullptr) return __libc_calloc(count, bytes);
  return made.zeroed ? made.block : std::memset(made.block, 0, total);
}

FERRY_API void* realloc(void* block, size_t bytes) {
  if (block == nullptr) return malloc(bytes);
  if (!blocks.owns(block)) {
    return bytes < LargeBlocks::kSmallest ? __libc_realloc(block, bytes)
                                          : realloc_libc(block, bytes);
  }
  if (bytes != 0) return realloc_shared(block, bytes);
  free(block);
  return nullptr;
}

FERRY_API void* reallocarray(void* block, size_t count, size_t bytes) {
  size_t total = 0;
  if (!__builtin_mul_overflow(count, bytes, &total)) return realloc(block, total);
  errno = ENOMEM;
  return nullptr;
}

FERRY_API void* memalign(size_t alignment, size_t bytes) {
  return aligned(alignment, bytes);
}

FERRY_API void* aligned_alloc(size_t alignment, size_t bytes) {
  return aligned(alignment, bytes);
}

FERRY_API int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int kept = errno;
  void* block = aligned(alignment, bytes);
  errno = kept;
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}

FERRY_API void* valloc(size_t bytes) {
  return aligned(LargeBlocks::kPage, bytes);
}

FERRY_API void* pvalloc(size_t bytes) {
  const size_t pages = (bytes + LargeBlocks::kPage - 1) / LargeBlocks::kPage;
  return aligned(LargeBlocks::kPage, pages * LargeBlocks::kPage);
}

FERRY_API size_t malloc_usable_size(void* block) {
  if (block == nullptr) return 0;
  return blocks.owns(block) ? blocks.size_of(block) : libc_size(block);
}

} // extern "C"
