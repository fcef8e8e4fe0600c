// SPDX-License-Identifier: MIT
#include <ferry/ferry.h>
#include <stdexcept>

#include "apps/ferry-bench/memory.hpp"

namespace ferry::bench {

std::byte* allocate_shared(std::size_t bytes) {
  void* memory = nullptr;
  if (ferry_alloc(static_cast<MPI_Aint>(bytes), &memory) != MPI_SUCCESS) {
    throw std::runtime_error(ferry_error_text());
  }
  return static_cast<std::byte*>(memory);
}

void free_shared(std::byte* memory) {
  static_cast<void>(ferry_free(memory));
}

} // namespace ferry::bench
