// SPDX-License-Identifier: MIT
#pragma once

// The GPU's runtime and its library of collectives: CUDA and NCCL, or, with FERRY_BENCH_HIP, HIP
// and RCCL, whose calls are the same. Sources are written against the names of CUDA.

#if defined(FERRY_BENCH_HIP)
#include <hip/hip_runtime_api.h>
#include <rccl/rccl.h>

#include <utility>

using cudaError_t = hipError_t;
using cudaStream_t = hipStream_t;
using cudaEvent_t = hipEvent_t;
using cudaGraph_t = hipGraph_t;
using cudaGraphExec_t = hipGraphExec_t;
using cudaDeviceProp = hipDeviceProp_t;

inline constexpr auto cudaSuccess = hipSuccess;
inline constexpr unsigned cudaStreamNonBlocking = hipStreamNonBlocking;
inline constexpr auto cudaMemcpyHostToDevice = hipMemcpyHostToDevice;
inline constexpr auto cudaMemcpyDeviceToHost = hipMemcpyDeviceToHost;
inline constexpr auto cudaStreamCaptureModeThreadLocal = hipStreamCaptureModeThreadLocal;

#define FERRY_ON_HIP_AS(name, target)                          \
  template <class... Arguments>                                \
  inline auto cuda##name(Arguments&&... arguments) {           \
    return hip##target(std::forward<Arguments>(arguments)...); \
  }
#define FERRY_ON_HIP(name) FERRY_ON_HIP_AS(name, name)

FERRY_ON_HIP(GetErrorString)
FERRY_ON_HIP(GetDeviceCount)
FERRY_ON_HIP(GetDevice)
FERRY_ON_HIP(SetDevice)
FERRY_ON_HIP(GetDeviceProperties)
FERRY_ON_HIP(DriverGetVersion)
FERRY_ON_HIP(RuntimeGetVersion)
FERRY_ON_HIP(Free)
FERRY_ON_HIP(Memcpy)
FERRY_ON_HIP(DeviceSynchronize)
FERRY_ON_HIP(StreamCreateWithFlags)
FERRY_ON_HIP(StreamDestroy)
FERRY_ON_HIP(StreamSynchronize)
FERRY_ON_HIP(StreamBeginCapture)
FERRY_ON_HIP(StreamEndCapture)
FERRY_ON_HIP(EventCreate)
FERRY_ON_HIP(EventDestroy)
FERRY_ON_HIP(EventRecord)
FERRY_ON_HIP(EventElapsedTime)
FERRY_ON_HIP(GraphDestroy)
FERRY_ON_HIP(GraphLaunch)
FERRY_ON_HIP(GraphExecDestroy)
FERRY_ON_HIP_AS(GraphInstantiate, GraphInstantiateWithFlags)

inline hipError_t cudaMalloc(void** memory, std::size_t bytes) {
  return hipMalloc(memory, bytes);
}

#undef FERRY_ON_HIP
#undef FERRY_ON_HIP_AS

#else
#include <cuda_runtime_api.h>
#include <nccl.h>
#endif
