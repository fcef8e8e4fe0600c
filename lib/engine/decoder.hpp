// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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
  // Executes every packet of the generation; until then those that Ferry's programs consist of.
  // Scopes, cache hints and the like say nothing on a CPU and are not looked at.
  void set_generation(device::Generation generation) noexcept { generation_ = generation; }
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

  // The fields of a complete packet.
  struct Fields {
    const device::Packet& packet;
    device::Generation generation;
    const std::uint32_t* dw;
    std::uint64_t operator()(device::FieldId id) const {
      return device::field_value(device::field_of(packet, generation, id), dw);
    }
    [[nodiscard]] bool understood() const;
  };
  // Rows of one side of a strided copy, in bytes.
  struct Rows {
    std::uint64_t first;
    std::uint64_t pitch;
    std::uint64_t slice_pitch;
    [[nodiscard]] std::uint64_t at(std::uint64_t y, std::uint64_t z) const {
      return first + y * pitch + z * slice_pitch;
    }
  };
  struct Box {
    std::uint64_t row_bytes;
    std::uint64_t rows;
    std::uint64_t slices;
  };

  StepState step_generation(
      const std::uint32_t* dw, std::uint64_t published, std::uint64_t contiguous,
      std::uint64_t* used);
  StepState execute_fields(const Fields& f, std::uint64_t dwords);
  StepState copy_fields(const Fields& f);
  StepState copy_two(const Fields& f);
  StepState swap(const Fields& f);
  StepState subwindow(const Fields& f);
  StepState subwindow_large(const Fields& f);
  StepState strided(const char* packet, const Rows& to, const Rows& from, const Box& box);
  StepState fused(const Fields& f);
  StepState any_atomic(
      std::uint32_t code, std::uint64_t address, std::uint64_t value, std::uint64_t compare);
  StepState store64(const char* packet, std::uint64_t address, std::uint64_t value);

  StepState execute(device::PacketKind kind, const std::uint32_t* dw, std::uint64_t dwords);
  StepState copy(const std::uint32_t* dw);
  StepState transfer(const char* packet, std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
  StepState write(const std::uint32_t* dw, std::uint64_t dwords);
  StepState write_words(std::uint64_t address, const std::uint32_t* words, std::uint64_t dwords);
  StepState fill(const std::uint32_t* dw);
  StepState fill_words(std::uint64_t address, std::uint32_t pattern, std::uint64_t bytes);
  StepState fence(const std::uint32_t* dw);
  StepState atomic(const std::uint32_t* dw);
  StepState poll(const std::uint32_t* dw);
  StepState poll64(const std::uint32_t* dw);
  StepState hold64(
      const char* packet, std::uint32_t function, std::uint64_t address, std::uint64_t reference,
      std::uint64_t mask);
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
  StepState outside(
      const char* packet, const char* where, std::uint64_t address, std::uint64_t bytes,
      bool write);
  StepState unreached(const Window& window, int error);

  const WindowSet* windows_ = nullptr;
  SignalHook hook_;
  int self_ = 0;
  std::optional<device::Generation> generation_;
  std::size_t source_hint_ = 0;
  std::size_t destination_hint_ = 0;
  std::size_t signal_hint_ = 0;
  std::size_t poll_hint_ = 0;
  Status error_;
};

} // namespace ferry::core
