// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/nvidia/handles.hpp"

namespace ferry::nvidia {

// Device memory of the current device, zeroed. Throws Failure(no_memory).
class DeviceBlock {
 public:
  DeviceBlock() = default;
  explicit DeviceBlock(std::size_t bytes);
  DeviceBlock(DeviceBlock&& other) noexcept;
  DeviceBlock& operator=(DeviceBlock&& other) noexcept;
  ~DeviceBlock();
  [[nodiscard]] char* get() const { return base_; }
  template <class T>
  [[nodiscard]] T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

 private:
  char* base_ = nullptr;
};

// Words between the host and kernels or stream operations, in pinned memory.
struct ControlWords {
  alignas(64) std::uint64_t release; // starts armed ahead up to this one may run
  alignas(64) std::uint64_t done; // starts that are complete
  alignas(64) std::uint32_t abort; // nonzero: waits give up
  alignas(64) std::uint32_t failed; // nonzero: a wait gave up
};

class Control {
 public:
  Control();
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  [[nodiscard]] ControlWords* get() const { return words_; }
  ControlWords* operator->() const { return words_; }

 private:
  ControlWords* words_ = nullptr;
};

// Host memory that another library owns, known to the device until the end.
class Registration {
 public:
  Registration() = default;
  Registration(void* memory, std::size_t bytes);
  Registration(Registration&& other) noexcept;
  Registration& operator=(Registration&& other) noexcept;
  ~Registration();

 private:
  void* memory_ = nullptr;
};

class Stream {
 public:
  Stream(); // of the highest priority
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&&) = delete;
  ~Stream();
  [[nodiscard]] hipStream_t get() const { return stream_; }

 private:
  hipStream_t stream_ = nullptr;
};

class Event {
 public:
  Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&&) = delete;
  ~Event();
  [[nodiscard]] hipEvent_t get() const { return event_; }

 private:
  hipEvent_t event_ = nullptr;
};

} // namespace ferry::nvidia
