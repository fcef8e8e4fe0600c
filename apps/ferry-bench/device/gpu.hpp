// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <mpi.h>

struct CUstream_st;
struct ihipStream_t;

namespace ferry::bench {

#if defined(FERRY_BENCH_HIP)
using GpuStream = ihipStream_t*;
#else
using GpuStream = CUstream_st*;
#endif

// Makes the GPU of this rank current: the ranks of a machine take them in turn.
void use_gpu(MPI_Comm comm);
[[nodiscard]] std::string gpu_versions(); // GPU, driver and runtime

// Buffers of cudaMalloc, a multiple of 2 MiB where they are large. Throws std::runtime_error.
class GpuBuffer {
 public:
  explicit GpuBuffer(std::size_t bytes);
  ~GpuBuffer();
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;
  [[nodiscard]] void* get() const { return data_; }

 private:
  void* data_ = nullptr;
};

class OwnedStream {
 public:
  OwnedStream();
  ~OwnedStream();
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  [[nodiscard]] GpuStream get() const { return stream_; }
  void synchronize() const;

 private:
  GpuStream stream_ = nullptr;
};

void write_gpu(void* to, const std::vector<unsigned char>& data);
[[nodiscard]] std::vector<unsigned char> read_gpu(const void* from, std::size_t bytes);

using Queue = std::function<void(GpuStream)>;

// Microseconds that `calls` calls in a row take on the stream, by events; of this rank.
[[nodiscard]] double time_on_stream(const OwnedStream& stream, int calls, const Queue& queue);

// `calls` calls captured into a graph, to be replayed as one.
class CapturedCalls {
 public:
  CapturedCalls(const OwnedStream& stream, int calls, const Queue& queue);
  ~CapturedCalls();
  CapturedCalls(const CapturedCalls&) = delete;
  CapturedCalls& operator=(const CapturedCalls&) = delete;
  void replay(GpuStream stream) const;

 private:
  void* exec_ = nullptr;
};

} // namespace ferry::bench
