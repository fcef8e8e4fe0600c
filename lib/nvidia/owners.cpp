// SPDX-License-Identifier: MIT
#include "lib/nvidia/owners.hpp"

#include <cstring>
#include <utility>

#include "lib/nvidia/check.hpp"
#include "lib/nvidia/hip_on_cuda.hpp"

namespace ferry::nvidia {

DeviceBlock::DeviceBlock(std::size_t bytes) {
  void* base = nullptr;
  check_runtime(hipMalloc(&base, bytes), "cudaMalloc");
  base_ = static_cast<char*>(base);
  // The legacy stream: done before anything that is queued later by this process, and before the
  // address is told to peers.
  const auto code = hipMemset(base, 0, bytes);
  const auto seen = code == hipSuccess ? hipStreamSynchronize(nullptr) : code;
  if (seen != hipSuccess) hipFree(std::exchange(base_, nullptr));
  check_runtime(seen, "cudaMemset");
}

DeviceBlock::DeviceBlock(DeviceBlock&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)) {}

DeviceBlock& DeviceBlock::operator=(DeviceBlock&& other) noexcept {
  std::swap(base_, other.base_);
  return *this;
}

DeviceBlock::~DeviceBlock() {
  if (base_ != nullptr) hipFree(base_);
}

Control::Control() {
  void* words = nullptr;
  check_runtime(
      hipHostMalloc(&words, sizeof(ControlWords), hipHostMallocMapped | hipHostMallocPortable),
      "cudaHostAlloc");
  std::memset(words, 0, sizeof(ControlWords));
  words_ = static_cast<ControlWords*>(words);
}

Control::~Control() {
  hipHostFree(words_);
}

Registration::Registration(void* memory, std::size_t bytes) {
  const auto code = hipHostRegister(memory, bytes, hipHostRegisterMapped | hipHostRegisterPortable);
  if (code == hipErrorHostMemoryAlreadyRegistered) {
    hipGetLastError();
    return; // somebody else ends it
  }
  check_runtime(code, "cudaHostRegister");
  memory_ = memory;
}

Registration::Registration(Registration&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)) {}

Registration& Registration::operator=(Registration&& other) noexcept {
  std::swap(memory_, other.memory_);
  return *this;
}

Registration::~Registration() {
  if (memory_ != nullptr) hipHostUnregister(memory_);
}

// Waiting kernels and copies of a plan are short; those of the program are not.
Stream::Stream() {
  int least = 0;
  int greatest = 0;
  check_runtime(
      hipDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  check_runtime(
      hipStreamCreateWithPriority(&stream_, hipStreamNonBlocking, greatest),
      "cudaStreamCreateWithPriority");
}

Stream::Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}

Stream::~Stream() {
  if (stream_ != nullptr) hipStreamDestroy(stream_);
}

Event::Event() {
  check_runtime(hipEventCreateWithFlags(&event_, hipEventDisableTiming), "cudaEventCreate");
}

Event::Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}

Event::~Event() {
  if (event_ != nullptr) hipEventDestroy(event_);
}

} // namespace ferry::nvidia
