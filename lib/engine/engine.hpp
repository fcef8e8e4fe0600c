// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <span>

#include "lib/engine/queue.hpp"

namespace ferry::core {

// Whoever consumes queues. All calls of one engine may come from any thread; a queue is submitted,
// progressed and retired by one thread at a time.
class Engine {
 public:
  virtual ~Engine() = default;
  [[nodiscard]] virtual const char* name() const = 0;

  // These queues have new work below their doorbells. Never blocks.
  virtual void submit(std::span<Queue* const> queues) = 0;

  // Moves the queues on a little (inline) or only looks (threads). failed: one of them failed.
  // drained: all are. advanced: call again at once. blocked: nothing to do for the caller until a
  // signal arrives or, with threads, until wake_owner runs.
  virtual QueueState progress(std::span<Queue* const> queues) = 0;

  // When this returns the engine no longer touches the queues; packets not consumed stay so.
  virtual void retire(std::span<Queue* const> queues) = 0;
};

// The calling thread interprets the packets, in progress().
[[nodiscard]] std::unique_ptr<Engine> make_inline_engine();

// Helper threads consume what was submitted. wake_owner runs on a helper thread, with the owner of
// a queue, whenever that queue is drained or failed; it must outlive the engine.
[[nodiscard]] std::unique_ptr<Engine> make_thread_engine(int threads, SignalHook wake_owner);

} // namespace ferry::core
