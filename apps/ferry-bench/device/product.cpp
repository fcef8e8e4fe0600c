// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/device/product.hpp"

#include <cublas_v2.h>
#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace ferry::bench {

using Gemm = cublasStatus_t (*)(
    cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*, const void*,
    cudaDataType, int, const void*, cudaDataType, int, const void*, void*, cudaDataType, int,
    cublasComputeType_t, cublasGemmAlgo_t);

struct Product::Library {
  cublasHandle_t handle = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  Gemm gemm = nullptr;
};

namespace {

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(call) + ": status " + std::to_string(status));
}

template <class Call>
Call look_up(void* handle, const char* name) {
  void* const found = dlsym(handle, name);
  if (found == nullptr) throw std::runtime_error(std::string("this cuBLAS has no ") + name);
  return reinterpret_cast<Call>(found);
}

// Values of random sign near one: a product of zeros runs faster than one of data.
std::vector<unsigned char> values(std::size_t count) {
  std::vector<unsigned char> data(count * 2);
  std::uint32_t state = 12345;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    data[2 * i] = static_cast<unsigned char>(state >> 16);
    data[2 * i + 1] = static_cast<unsigned char>(0x3f | (state >> 31 << 7));
  }
  return data;
}

} // namespace

Product::Product(int side) : library_(std::make_unique<Library>()), side_(side) {
  void* handle = nullptr;
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}) {
    if (handle == nullptr) handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (handle == nullptr) throw std::runtime_error(dlerror());
  library_->destroy = look_up<decltype(&cublasDestroy_v2)>(handle, "cublasDestroy_v2");
  library_->set_stream = look_up<decltype(&cublasSetStream_v2)>(handle, "cublasSetStream_v2");
  library_->gemm = look_up<Gemm>(handle, "cublasGemmEx");
  const auto create = look_up<decltype(&cublasCreate_v2)>(handle, "cublasCreate_v2");
  check(create(&library_->handle), "cublasCreate");
  const auto count = static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
  for (auto* matrix : {&a_, &b_, &c_}) *matrix = std::make_unique<GpuBuffer>(count * 2);
  const std::vector<unsigned char> data = values(count);
  write_gpu(a_->get(), data);
  write_gpu(b_->get(), data);
}

Product::~Product() {
  library_->destroy(library_->handle);
}

void Product::queue(GpuStream stream) {
  check(library_->set_stream(library_->handle, stream), "cublasSetStream");
  const auto n = static_cast<int>(side_);
  const float one = 1;
  const float zero = 0;
  check(
      library_->gemm(
          library_->handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a_->get(), CUDA_R_16BF, n,
          b_->get(), CUDA_R_16BF, n, &zero, c_->get(), CUDA_R_16BF, n, CUBLAS_COMPUTE_32F,
          CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
}

} // namespace ferry::bench
