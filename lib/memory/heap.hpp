// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <type_traits>

namespace ferry::core {

// How another process finds and recognises a heap. Sent as bytes.
struct HeapId {
  std::uint64_t stamp[2] = {0, 0}; // random, stands in the heap's header as well
  std::uint64_t bytes = 0; // of address range
  std::int32_t pid = 0;
  std::int32_t descriptor = -1; // of the segment in process pid
  char shm_name[40] = {}; // empty for an anonymous segment
};
static_assert(std::is_trivially_copyable_v<HeapId>);

// First bytes of every heap: how its owner is recognised and woken.
struct HeapHeader {
  std::uint64_t stamp[2];
  alignas(64) std::atomic<std::uint32_t> wakes; // futex word
  alignas(64) std::atomic<std::uint32_t> sleepers; // threads of the owner that sleep on wakes
  alignas(64) std::atomic<std::uint64_t> probe; // value at HeapHeader::probe_address
  std::atomic<std::uint64_t> probe_address; // private memory that others try to attach
};
static_assert(sizeof(HeapHeader) <= 4096);

// The shared memory of this process: one segment, one descriptor and one mapping for all that peers
// can map. Pages are reserved when they are allocated and given back when they are released, so
// that a machine without room is an error here and never a fatal signal later.
class Heap {
 public:
  // The heap of this process, made at the first call. Throws Failure(no_memory).
  static Heap& instance();
  // The heap if it was made already.
  static Heap* existing() noexcept;

  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Zeroed pages that hold `bytes` bytes. Throws Failure(no_memory) naming needed and free bytes.
  [[nodiscard]] void* allocate(std::size_t bytes);
  // Of a pointer from allocate(); false when it is none.
  bool release(void* pointer);

  // Offset in the heap when [pointer, pointer + bytes) lies in one allocation.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(
      const void* pointer, std::uint64_t bytes) const;

  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  [[nodiscard]] HeapHeader& header() const noexcept {
    return *reinterpret_cast<HeapHeader*>(base_);
  }
  [[nodiscard]] const HeapId& id() const noexcept { return id_; }
  // A segment in /dev/shm has a name only between these two, while peers map it.
  void announce_name();
  void forget_name() noexcept;

 private:
  Heap();
  void make_segment();
  void map_range();
  void reserve(std::uint64_t offset, std::uint64_t bytes);
  [[noreturn]] void fail(const std::string& what, int error) const;

  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_; // offset -> bytes
  std::map<std::uint64_t, std::uint64_t> live_;
  std::byte* base_ = nullptr;
  bool announced_ = false;
  HeapId id_;
};

// Sleep until someone wakes the owner of this heap, `seconds` have passed, or `ready` is true
// already.
void sleep_on(HeapHeader& header, double seconds, bool (*ready)(void*), void* context);
// Wake the threads that sleep on this heap; cheap when there are none. `fence`: order it against a
// preceding plain store (an atomic read-modify-write orders itself).
void wake(HeapHeader& header, bool fence);

} // namespace ferry::core
