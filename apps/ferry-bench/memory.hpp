// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace ferry::bench {

// Memory that the library under test gives for buffers: of ferry_alloc, or of MPI_Alloc_mem in the
// program that is built against another MPI. Throws std::runtime_error with the library's reason.
[[nodiscard]] std::byte* allocate_shared(std::size_t bytes);
void free_shared(std::byte* memory);

} // namespace ferry::bench
