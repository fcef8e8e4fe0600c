// SPDX-License-Identifier: MIT
// A build for AMD GPUs has neither kernels of its own nor cuBLAS.
#include <stdexcept>

#include "apps/ferry-bench/device/armed.hpp"
#include "apps/ferry-bench/device/product.hpp"

namespace ferry::bench {

ArmedTime time_armed(
    const DeviceCall& /*call*/, int /*starts*/, const OwnedStream& /*stream*/, MPI_Comm /*comm*/,
    std::uint64_t /*round*/) {
  throw std::runtime_error("starts by a kernel are measured on NVIDIA GPUs only");
}

struct Product::Library {};

Product::Product(int side) : side_(side) {
  throw std::runtime_error("--overlap is measured on NVIDIA GPUs only");
}
Product::~Product() = default;
void Product::queue(GpuStream /*stream*/) {}

} // namespace ferry::bench
