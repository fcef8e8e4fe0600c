// SPDX-License-Identifier: MIT
#include <mpi.h>
#include <stdexcept>

#include "apps/ferry-bench/memory.hpp"

namespace ferry::bench {

std::byte* allocate_shared(std::size_t bytes) {
  void* memory = nullptr;
  if (MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &memory) != MPI_SUCCESS) {
    throw std::runtime_error("MPI_Alloc_mem failed");
  }
  return static_cast<std::byte*>(memory);
}

void free_shared(std::byte* memory) {
  MPI_Free_mem(memory);
}

} // namespace ferry::bench
