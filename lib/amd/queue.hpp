// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "device/generation.hpp"
#include "device/ring.hpp"
#include "lib/amd/topology.hpp"
#include "lib/base/error.hpp"

namespace ferry::amd {

inline constexpr std::uint32_t kAnyEngine = ~std::uint32_t{0}; // the driver picks

// A ring of packets with a copy engine behind it. One thread produces. Whoever destroys a queue has
// it drained, or gives up what is in it: the destructor waits for the engine only so long.
class SdmaQueue {
 public:
  SdmaQueue(int node, std::uint32_t engine) : node_(node), engine_(engine) {}
  SdmaQueue(const SdmaQueue&) = delete;
  SdmaQueue& operator=(const SdmaQueue&) = delete;
  virtual ~SdmaQueue() = default;

  [[nodiscard]] virtual const device::RingHandle& ring() const = 0;
  // Moves a queue on whose packets the host carries out; an engine of hardware needs no help. An
  // error is final: the queue stands still.
  [[nodiscard]] virtual core::Status progress() = 0;

  [[nodiscard]] int node() const { return node_; }
  [[nodiscard]] std::uint32_t engine() const { return engine_; }
  [[nodiscard]] std::string name() const; // "queue on engine 4 of node 2"
  [[nodiscard]] std::uint64_t written() const;
  [[nodiscard]] std::uint64_t consumed() const;
  [[nodiscard]] bool drained() const { return consumed() >= written(); }
  // What is in the ring will not run any more: the destructor need not wait for it.
  void give_up() { given_up_ = true; }
  [[nodiscard]] bool given_up() const { return given_up_; }

 private:
  int node_;
  std::uint32_t engine_;
  bool given_up_ = false;
};

// One way to queues. Packets, cursors and doorbell are the same for all; who consumes them is not.
class QueueProvider {
 public:
  QueueProvider() = default;
  QueueProvider(const QueueProvider&) = delete;
  QueueProvider& operator=(const QueueProvider&) = delete;
  virtual ~QueueProvider() = default;

  [[nodiscard]] virtual const char* name() const = 0; // "kfd", "hsa"
  // Empty when it can make queues on this GPU, otherwise why not.
  [[nodiscard]] virtual std::string refuses(const Gpu& gpu) = 0;
  // Does hardware read the words that packets of these queues poll and raise? Then they lie in
  // memory of GPUs; otherwise in memory of the host.
  [[nodiscard]] virtual bool in_hardware() const = 0;
  // False: whatever engine is asked for, the driver picks one.
  [[nodiscard]] virtual bool chooses_engines() const = 0;
  // Engines of `from` that whoever is behind it would take for copies to `to`, one bit each; 0: it
  // does not say.
  [[nodiscard]] virtual std::uint32_t preferred_engines(
      const Gpu& /*from*/, const Gpu& /*to*/) const {
    return 0;
  }
  // What the consumer of its queues understands.
  [[nodiscard]] virtual device::Generation packets(const Gpu& gpu) const = 0;
  // Memory for trigger and completion, which both the host and the engines of `gpu` reach: zeroed,
  // a page. Throws Failure.
  [[nodiscard]] virtual std::shared_ptr<std::uint64_t> control_page(const Gpu& gpu) = 0;
  // Throws Failure; of kind no_memory when this engine has no queue left, and another may have.
  [[nodiscard]] virtual std::unique_ptr<SdmaQueue> create(
      const Gpu& gpu, std::uint32_t engine, std::size_t ring_bytes) = 0;
};

} // namespace ferry::amd
