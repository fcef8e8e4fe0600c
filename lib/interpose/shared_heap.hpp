// SPDX-License-Identifier: MIT
#pragma once

#include <stddef.h>

#include "include/ferry/ferry.h"

// What libferry-heap.so needs of the heap in libferry-mpi.so: between libraries of one release, not
// for programs. Nothing throws.
extern "C" {

// Makes the heap at the first call. False when there is none: FERRY=off, no shared memory.
FERRY_API bool ferry_heap_open(char** begin, char** end) noexcept;
// Whole zeroed pages, or null.
FERRY_API void* ferry_heap_allocate(size_t bytes) noexcept;
FERRY_API void ferry_heap_release(void* block) noexcept;
// In a child of fork: the heap becomes a copy on write, since the parent and its peers go on.
FERRY_API void ferry_heap_leave() noexcept;
}
