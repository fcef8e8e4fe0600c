// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/device/gpu.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "apps/ferry-bench/device/gpu_runtime.hpp"

namespace ferry::bench {

namespace {

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  throw std::runtime_error(fmt::format("{}: {}", call, cudaGetErrorString(code)));
}

} // namespace

void use_gpu(MPI_Comm comm) {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int rank = 0;
  MPI_Comm_rank(node, &rank);
  MPI_Comm_free(&node);
  int gpus = 0;
  check(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  check(cudaSetDevice(rank % gpus), "cudaSetDevice");
}

std::string gpu_versions() {
  cudaDeviceProp properties{};
  int device = 0;
  int gpus = 0;
  int driver = 0;
  int runtime = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
#if defined(FERRY_BENCH_HIP)
  return fmt::format("{} x {}, driver {}, runtime {}", gpus, properties.name, driver, runtime);
#else
  return fmt::format(
      "{} x {}, driver for CUDA {}.{}, runtime {}.{}", gpus, properties.name, driver / 1000,
      driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
#endif
}

GpuBuffer::GpuBuffer(std::size_t bytes) {
  constexpr std::size_t kUnit = std::size_t{2} << 20;
  if (bytes > kUnit) bytes = (bytes + kUnit - 1) / kUnit * kUnit;
  check(cudaMalloc(&data_, bytes == 0 ? 1 : bytes), "cudaMalloc");
}

GpuBuffer::~GpuBuffer() {
  cudaFree(data_);
}

OwnedStream::OwnedStream() {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

OwnedStream::~OwnedStream() {
  cudaStreamDestroy(stream_);
}

void OwnedStream::synchronize() const {
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

void write_gpu(void* to, const std::vector<unsigned char>& data) {
  check(cudaMemcpy(to, data.data(), data.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

std::vector<unsigned char> read_gpu(const void* from, std::size_t bytes) {
  std::vector<unsigned char> data(bytes);
  check(cudaMemcpy(data.data(), from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return data;
}

double time_on_stream(const OwnedStream& stream, int calls, const Queue& queue) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  check(cudaEventRecord(begin, stream.get()), "cudaEventRecord");
  for (int i = 0; i < calls; ++i) queue(stream.get());
  check(cudaEventRecord(end, stream.get()), "cudaEventRecord");
  stream.synchronize();
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return static_cast<double>(milliseconds) * 1e3;
}

CapturedCalls::CapturedCalls(const OwnedStream& stream, int calls, const Queue& queue) {
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "capture");
  for (int i = 0; i < calls; ++i) queue(stream.get());
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream.get(), &graph), "end of capture");
  cudaGraphExec_t exec = nullptr;
  check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
  exec_ = exec;
  cudaGraphDestroy(graph);
}

CapturedCalls::~CapturedCalls() {
  cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(exec_));
}

void CapturedCalls::replay(GpuStream stream) const {
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(exec_), stream), "cudaGraphLaunch");
}

} // namespace ferry::bench
