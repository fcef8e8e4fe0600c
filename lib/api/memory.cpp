// SPDX-License-Identifier: MIT
// ferry_alloc and ferry_free. Like malloc they only return their error: no communicator is
// involved.
#include <fmt/format.h>

#include "include/ferry/ferry.h"
#include "lib/api/report.hpp"
#include "lib/memory/heap.hpp"

using namespace ferry::core;

extern "C" {

int ferry_alloc(MPI_Aint size, void* baseptr) {
  return guarded({"ferry_alloc", MPI_COMM_NULL, true}, [&] {
    if (baseptr == nullptr) {
      throw Failure(ErrorKind::argument, "baseptr is NULL", "pass the address of a pointer");
    }
    if (size < 0) {
      throw Failure(
          ErrorKind::argument, fmt::format("the size is {}", size), "pass 0 or more bytes");
    }
    auto** pointer = static_cast<void**>(baseptr);
    *pointer = nullptr;
    *pointer = Heap::instance().allocate(static_cast<std::size_t>(size));
    return MPI_SUCCESS;
  });
}

int ferry_free(void* base) {
  return guarded({"ferry_free", MPI_COMM_NULL, true}, [&] {
    if (base == nullptr) return MPI_SUCCESS;
    Heap* heap = Heap::existing();
    if (heap == nullptr || !heap->release(base)) {
      throw Failure(
          ErrorKind::argument, fmt::format("{} is no pointer of ferry_alloc", base),
          "free each pointer of ferry_alloc once, and no other");
    }
    return MPI_SUCCESS;
  });
}

} // extern "C"
