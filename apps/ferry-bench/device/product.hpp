// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "apps/ferry-bench/device/gpu.hpp"

namespace ferry::bench {

// A matrix product of bf16 by cuBLAS, loaded at run time. Throws std::runtime_error.
class Product {
 public:
  explicit Product(int side);
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  void queue(GpuStream stream);
  [[nodiscard]] double operations() const { return 2.0 * side_ * side_ * side_; }

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  double side_;
  std::unique_ptr<GpuBuffer> a_;
  std::unique_ptr<GpuBuffer> b_;
  std::unique_ptr<GpuBuffer> c_;
};

} // namespace ferry::bench
