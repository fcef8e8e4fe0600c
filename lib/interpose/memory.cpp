// SPDX-License-Identifier: MIT
// Memory of MPI_Alloc_mem comes from the shared heap: peers map it, which saves them a copy.
#include "include/ferry/ferry.h"
#include "lib/config/config.hpp"
#include "lib/interpose/next.hpp"
#include "lib/memory/heap.hpp"

namespace ferry::interpose {
namespace {

constexpr MPI_Aint kPage =
    4096; // the heap gives out whole pages; smaller blocks gain nothing there

bool allocate(MPI_Aint size, void* baseptr) {
  if (size < kPage || baseptr == nullptr) return false;
  try {
    if (!core::config().enabled) return false;
    *static_cast<void**>(baseptr) = core::Heap::instance().allocate(static_cast<std::size_t>(size));
    return true;
  } catch (const std::exception&) {
    return false; // no shared memory left, or a wrong environment: the MPI below has private memory
  }
}

bool release(void* base) {
  core::Heap* heap = core::Heap::existing();
  return heap != nullptr && heap->release(base);
}

} // namespace
} // namespace ferry::interpose

#define FERRY_MEMORY(symbol_alloc, symbol_free)                                        \
  extern "C" FERRY_API int symbol_alloc(MPI_Aint size, MPI_Info info, void* baseptr) { \
    FERRY_NEXT(symbol_alloc);                                                          \
    if (ferry::interpose::allocate(size, baseptr)) return MPI_SUCCESS;                 \
    return next(size, info, baseptr);                                                  \
  }                                                                                    \
  extern "C" FERRY_API int symbol_free(void* base) {                                   \
    FERRY_NEXT(symbol_free);                                                           \
    if (ferry::interpose::release(base)) return MPI_SUCCESS;                           \
    return next(base);                                                                 \
  }

FERRY_MEMORY(MPI_Alloc_mem, MPI_Free_mem)
FERRY_MEMORY(PMPI_Alloc_mem, PMPI_Free_mem)
