// SPDX-License-Identifier: MIT
#include "lib/interpose/shared_heap.hpp"

#include <sys/mman.h>
#include <exception>

#include "lib/config/config.hpp"
#include "lib/memory/heap.hpp"

using ferry::core::Heap;

bool ferry_heap_open(char** begin, char** end) noexcept {
  try {
    if (!ferry::core::config().enabled) return false;
    const Heap& heap = Heap::instance();
    *begin = reinterpret_cast<char*>(heap.base());
    *end = *begin + heap.id().bytes;
    return true;
  } catch (const std::exception&) {
    return false; // a wrong environment is reported by the first collective
  }
}

void* ferry_heap_allocate(size_t bytes) noexcept {
  try {
    return Heap::instance().allocate(bytes);
  } catch (const std::exception&) {
    return nullptr;
  }
}

void ferry_heap_release(void* block) noexcept {
  Heap::instance().release(block);
}

void ferry_heap_leave() noexcept {
  Heap* heap = Heap::existing();
  if (heap == nullptr) return;
  // The pages as they are at this moment, or as the parent writes them until the child does.
  mmap(
      heap->base(), heap->id().bytes, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, heap->id().descriptor, 0);
}
