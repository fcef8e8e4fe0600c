// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "lib/nvidia/descriptor.hpp"

namespace ferry::nvidia {

// How a peer may reach memory.
enum class Reach : std::uint32_t {
  none, // there is none
  direct, // by CUDA IPC, or the same process
  shareable, // an allocation of the virtual memory calls, by a descriptor
};

// What a rank tells of a range of its device memory. Sent as bytes.
struct Exported {
  Reach reach = Reach::none;
  std::int32_t pid = 0;
  std::uint64_t process = 0; // tells processes apart, whatever their pid namespaces
  std::uint64_t base = 0; // of the allocation
  std::uint64_t bytes = 0; // of the allocation
  std::uint64_t offset = 0; // of the range
  std::uint64_t identity = 0; // of the allocation: never given twice in a process
  std::int32_t descriptor = -1; // in process pid
  unsigned char handle[64] = {};
};

enum class Kind { host, device, managed };
// What a pointer points to; under 200 ns.
[[nodiscard]] Kind kind_of(const void* pointer) noexcept;
// The ordinal of the device that holds it.
[[nodiscard]] int device_of(const void* pointer);

// Throws Failure unless the range lies within one allocation of a device.
void check_range(const void* pointer, std::uint64_t bytes);

// The range must be device memory. kept holds a descriptor that must stay open until every peer has
// opened the range. Throws Failure when no other process can reach it.
[[nodiscard]] Exported export_range(
    const void* pointer, std::uint64_t bytes, std::uint64_t process, Descriptor& kept);

// A peer's allocation in this address space, until the last holder lets go.
class Mapping {
 public:
  Mapping(const Exported& from, int device, std::uint64_t process);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] char* base() const { return base_; }

 private:
  char* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  Reach reach_ = Reach::none; // none: nothing to undo
  int device_ = 0;
};

// Mappings by the identity of the allocation, so that a freed and re-allocated block is another
// one. Those that no plan holds stay until newer ones drive them out.
class MappingCache {
 public:
  // Throws Failure. The range begins at ->base() + from.offset.
  [[nodiscard]] std::shared_ptr<Mapping> open(
      const Exported& from, int device, std::uint64_t process);
  [[nodiscard]] std::size_t size();

 private:
  struct Entry {
    Exported key;
    int device;
    std::shared_ptr<Mapping> mapping;
  };
  void evict(const Exported& coming);

  std::mutex mutex_;
  std::list<Entry> entries_; // the latest used first
};

// Sets the device for a scope.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = -1;
};

} // namespace ferry::nvidia
