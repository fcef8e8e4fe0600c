// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "device/ring.hpp"
#include "lib/base/error.hpp"
#include "lib/engine/decoder.hpp"
#include "lib/engine/window.hpp"

namespace ferry::core {

enum class Producers { one, several };

// Owns the memory of a ring: zeroed, page aligned, each cursor on its own cache line.
class HostRing {
 public:
  // Throws Failure unless ring_bytes is a power of two of at least 64.
  explicit HostRing(std::size_t ring_bytes, Producers producers = Producers::one);
  [[nodiscard]] device::RingHandle& handle() noexcept { return handle_; }
  [[nodiscard]] const device::RingHandle& handle() const noexcept { return handle_; }

 private:
  struct Release {
    void operator()(void* memory) const noexcept;
  };
  std::unique_ptr<void, Release> memory_;
  device::RingHandle handle_;
};

enum class QueueState {
  drained, // nothing left below the doorbell
  advanced, // packets were consumed, more are left
  blocked, // the next packet polls a word that is not there yet
  failed, // a bad packet stopped the queue for good; error() tells
};

// An engine's own data on a queue, under the lock of that engine.
struct EngineLink {
  enum class Activity { idle, queued, running, resubmitted };
  class Queue* next = nullptr;
  Activity activity = Activity::idle;
  bool retiring = false;
};

// One ring of packets and its consumer. One thread at a time consumes; producers are others.
class Queue {
 public:
  explicit Queue(std::size_t ring_bytes, Producers producers = Producers::one);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Set-up, before the first packet is published. Windows and hook context outlive the queue.
  void set_windows(const WindowSet* windows) noexcept { decoder_.set_windows(windows); }
  // self is the rank that owns this queue; hook runs for signals to others (see Decoder).
  void set_hook(SignalHook hook, int self) noexcept { decoder_.set_hook(hook, self); }
  // Whose packets it takes; without this those that Ferry's own plans use.
  void set_generation(device::Generation generation) noexcept {
    decoder_.set_generation(generation);
  }
  // The number by which error texts call this queue.
  void set_id(int id) noexcept { id_ = id; }
  [[nodiscard]] int id() const noexcept { return id_; }
  [[nodiscard]] int owner() const noexcept { return decoder_.self(); }

  // Producer side. The ring memory may be written while the queue is drained, or where the
  // consumer has passed; publish() is for a single producer that writes it directly.
  [[nodiscard]] device::RingHandle& ring() noexcept { return ring_.handle(); }
  [[nodiscard]] std::uint32_t* image() noexcept { return ring_.handle().base; }
  [[nodiscard]] std::size_t bytes() const noexcept { return ring_.handle().bytes; }
  void publish(std::uint64_t new_wptr) noexcept;

  // Any thread. Monotonic byte offsets.
  [[nodiscard]] std::uint64_t written() const noexcept;
  [[nodiscard]] std::uint64_t consumed() const noexcept;
  [[nodiscard]] bool drained() const noexcept { return consumed() >= written(); }
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  // Fine until failed() is true; constant from then on.
  [[nodiscard]] const Status& error() const noexcept { return failed() ? error_ : fine_; }

  // Consumer side: executes at most max_packets packets below the doorbell.
  QueueState consume(int max_packets);

  [[nodiscard]] EngineLink& link() noexcept { return link_; }

 private:
  friend struct QueueInside; // of the model engine, which the tests link

  bool plausible(std::uint64_t doorbell);
  QueueState fail(ErrorKind kind, const std::string& cause);

  HostRing ring_;
  Decoder decoder_;
  std::uint64_t position_ = 0; // the consumer's own rptr: the shared word is only ever written
  int id_ = 0;
  std::atomic<bool> failed_{false};
  Status error_; // written once, before failed_
  const Status fine_;
  EngineLink link_;
};

} // namespace ferry::core
