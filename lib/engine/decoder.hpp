// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/packet.hpp"
#include "lib/base/error.hpp"
#include "lib/engine/window.hpp"

namespace ferry::core {

// Called after a packet changed a word of `owner`, who may sleep on it. Must be thread safe when an
// engine with threads consumes the queue.
struct SignalHook {
  void (*fn)(void* ctx, int owner) = nullptr;
  void* ctx = nullptr;
  void operator()(int owner) const {
    if (fn != nullptr) fn(ctx, owner);
  }
};

enum class StepState { done, blocked, failed };

// Interprets single packets. Trusts none: nothing outside the windows is read or written.
class Decoder {
 public:
  void set_windows(const WindowSet* windows) noexcept { windows_ = windows; }
  // hook runs for signals in windows of other owners than self, and for TRAP with self.
  void set_hook(SignalHook hook, int self) noexcept {
    hook_ = hook;
    self_ = self;
  }
  [[nodiscard]] int self() const noexcept { return self_; }
  [[nodiscard]] const SignalHook& hook() const noexcept { return hook_; }

  // Executes the packet at dw. published: dwords below the doorbell; contiguous: those of them
  // before the end of the ring. done: *used dwords may be released. blocked: a poll is not
  // satisfied, call again. failed: error() tells why.
  StepState step(
      const std::uint32_t* dw, std::uint64_t published, std::uint64_t contiguous,
      std::uint64_t* used);
  [[nodiscard]] const Status& error() const noexcept { return error_; }

 private:
  struct Place {
    const Window* window;
    std::uint64_t address;
  };

  StepState execute(device::PacketKind kind, const std::uint32_t* dw, std::uint64_t dwords);
  StepState copy(const std::uint32_t* dw);
  StepState write(const std::uint32_t* dw, std::uint64_t dwords);
  StepState fill(const std::uint32_t* dw);
  StepState fence(const std::uint32_t* dw);
  StepState atomic(const std::uint32_t* dw);
  StepState poll(const std::uint32_t* dw);
  StepState poll64(const std::uint32_t* dw);
  StepState trap();

  StepState move(const Place& to, const Place& from, std::uint64_t bytes);
  StepState push(const Place& to, const void* data, std::uint64_t bytes);
  // The window of a naturally aligned word that this process can reach; null after bad().
  const Window* word(
      const char* packet, std::uint64_t address, std::uint64_t bytes, bool write,
      std::size_t& hint);
  const Window* find(
      std::uint64_t address, std::uint64_t bytes, bool write, std::size_t& hint) const noexcept {
    return windows_ != nullptr ? windows_->find(address, bytes, write, hint) : nullptr;
  }
  void announce(const Window& window) const {
    if (window.owner != self_) hook_(window.owner);
  }
  StepState bad(std::string cause);
  StepState outside(const char* packet, std::uint64_t address, std::uint64_t bytes, bool write);
  StepState unreached(const Window& window, int error);

  const WindowSet* windows_ = nullptr;
  SignalHook hook_;
  int self_ = 0;
  std::size_t source_hint_ = 0;
  std::size_t destination_hint_ = 0;
  std::size_t signal_hint_ = 0;
  std::size_t poll_hint_ = 0;
  Status error_;
};

} // namespace ferry::core
