// SPDX-License-Identifier: MIT
#pragma once

// The HIP names that Ferry uses, on NVIDIA: sources are written against these and nothing else of
// the runtime. Calls that only the driver has are in driver.hpp.

#include "lib/nvidia/handles.hpp"

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

using hipError_t = cudaError_t;
using hipDeviceProp_t = cudaDeviceProp;
using hipIpcMemHandle_t = cudaIpcMemHandle_t;
using hipGraph_t = cudaGraph_t;
using hipGraphExec_t = cudaGraphExec_t;
using hipStreamCaptureStatus = cudaStreamCaptureStatus;
using hipStreamCaptureMode = cudaStreamCaptureMode;

inline constexpr auto hipSuccess = cudaSuccess;
inline constexpr auto hipErrorNotReady = cudaErrorNotReady;
inline constexpr auto hipErrorHostMemoryAlreadyRegistered = cudaErrorHostMemoryAlreadyRegistered;
inline constexpr auto hipErrorPeerAccessAlreadyEnabled = cudaErrorPeerAccessAlreadyEnabled;
inline constexpr auto hipMemcpyDefault = cudaMemcpyDefault;
inline constexpr auto hipStreamCaptureModeRelaxed = cudaStreamCaptureModeRelaxed;
inline constexpr auto hipStreamCaptureStatusNone = cudaStreamCaptureStatusNone;
inline constexpr unsigned hipStreamNonBlocking = cudaStreamNonBlocking;
inline const cudaStream_t hipStreamLegacy = cudaStreamLegacy;
inline constexpr unsigned hipEventDisableTiming = cudaEventDisableTiming;
inline constexpr unsigned hipHostMallocMapped = cudaHostAllocMapped;
inline constexpr unsigned hipHostMallocPortable = cudaHostAllocPortable;
inline constexpr unsigned hipHostRegisterMapped = cudaHostRegisterMapped;
inline constexpr unsigned hipHostRegisterPortable = cudaHostRegisterPortable;
inline constexpr unsigned hipIpcMemLazyEnablePeerAccess = cudaIpcMemLazyEnablePeerAccess;

#define FERRY_HIP_CALL_AS(name, target)                         \
  template <class... Arguments>                                 \
  inline auto hip##name(Arguments&&... arguments) {             \
    return cuda##target(std::forward<Arguments>(arguments)...); \
  }
#define FERRY_HIP_CALL(name) FERRY_HIP_CALL_AS(name, name)

FERRY_HIP_CALL(GetErrorName)
FERRY_HIP_CALL(GetErrorString)
FERRY_HIP_CALL(GetLastError)
FERRY_HIP_CALL(GetDeviceCount)
FERRY_HIP_CALL(GetDevice)
FERRY_HIP_CALL(SetDevice)
FERRY_HIP_CALL(GetDeviceProperties)
FERRY_HIP_CALL(DeviceCanAccessPeer)
FERRY_HIP_CALL(DeviceGetStreamPriorityRange)
FERRY_HIP_CALL(DriverGetVersion)
FERRY_HIP_CALL(RuntimeGetVersion)
FERRY_HIP_CALL(Malloc)
FERRY_HIP_CALL(Free)
FERRY_HIP_CALL_AS(HostMalloc, HostAlloc)
FERRY_HIP_CALL_AS(HostFree, FreeHost)
FERRY_HIP_CALL(HostRegister)
FERRY_HIP_CALL(HostUnregister)
FERRY_HIP_CALL(HostGetDevicePointer)
FERRY_HIP_CALL(Memcpy)
FERRY_HIP_CALL(MemcpyAsync)
FERRY_HIP_CALL(Memset)
FERRY_HIP_CALL(MemsetAsync)
FERRY_HIP_CALL(IpcGetMemHandle)
FERRY_HIP_CALL(IpcOpenMemHandle)
FERRY_HIP_CALL(IpcCloseMemHandle)
FERRY_HIP_CALL(StreamCreateWithPriority)
FERRY_HIP_CALL(StreamDestroy)
FERRY_HIP_CALL(StreamSynchronize)
FERRY_HIP_CALL(StreamQuery)
FERRY_HIP_CALL(StreamWaitEvent)
FERRY_HIP_CALL(StreamIsCapturing)
FERRY_HIP_CALL(EventCreateWithFlags)
FERRY_HIP_CALL(EventDestroy)
FERRY_HIP_CALL(EventRecord)
FERRY_HIP_CALL(EventQuery)
FERRY_HIP_CALL(ThreadExchangeStreamCaptureMode)

// A copy within a device that is asked to leave the SMs to others; not while a stream is captured.
// Runtime 13.0 takes them all the same. False: it was not queued.
inline bool copy_beside(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
#if CUDART_VERSION >= 13000
  cudaMemcpyAttributes how{};
  how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  how.flags = cudaMemcpyFlagPreferOverlapWithCompute;
  std::size_t first = 0;
  const auto code = cudaMemcpyBatchAsync(&to, &from, &bytes, 1, &how, &first, 1, stream);
  if (code != cudaSuccess) cudaGetLastError();
  return code == cudaSuccess;
#else
  static_cast<void>(to), static_cast<void>(from), static_cast<void>(bytes);
  static_cast<void>(stream);
  return false;
#endif
}

#undef FERRY_HIP_CALL
#undef FERRY_HIP_CALL_AS

#endif
