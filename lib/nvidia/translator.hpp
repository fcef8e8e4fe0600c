// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/ring.hpp"
#include "lib/base/error.hpp"
#include "lib/engine/window.hpp"

namespace ferry::nvidia {

// What packets become: operations of a stream, in its order. Two implementations: a stream of the
// GPU, and one of the tests that records.
class CommandStream {
 public:
  CommandStream() = default;
  CommandStream(const CommandStream&) = delete;
  CommandStream& operator=(const CommandStream&) = delete;
  virtual ~CommandStream() = default;

  virtual void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) = 0;
  virtual void fill(std::uint64_t to, std::uint32_t pattern, std::uint64_t bytes) = 0;
  // Behind everything before it, also for who looks from elsewhere.
  virtual void write32(std::uint64_t address, std::uint32_t value) = 0;
  virtual void write64(std::uint64_t address, std::uint64_t value) = 0;
  // Holds the stream until the word is at least value.
  virtual void wait32(std::uint64_t address, std::uint32_t value) = 0;
  virtual void wait64(std::uint64_t address, std::uint64_t value) = 0;
  // What was queued since the last time may begin.
  virtual void submit() = 0;
};

// The consumer of one ring whose packets a stream carries out. An ATOMIC becomes a store, so its
// word must have this ring as its only writer; it starts at zero. rptr is raised by the stream,
// behind the packets: a flush on the ring then means what it means everywhere. Trusts no packet:
// nothing outside the windows is read or written.
class Translator {
 public:
  enum class State { idle, moved, failed };

  Translator(const device::RingHandle& ring, const core::WindowSet& windows)
      : ring_(ring), windows_(windows) {}

  // Translates at most max_packets packets below the doorbell. failed: for good, error() tells.
  State advance(CommandStream& out, int max_packets);
  [[nodiscard]] const core::Status& error() const { return error_; }
  [[nodiscard]] std::uint64_t position() const { return position_; }

 private:
  bool translate(const std::uint32_t* dw, std::uint64_t dwords, CommandStream& out);
  bool copy(const std::uint32_t* dw, CommandStream& out);
  bool write(const std::uint32_t* dw, std::uint64_t dwords, CommandStream& out);
  bool fill(const std::uint32_t* dw, CommandStream& out);
  bool atomic(const std::uint32_t* dw, CommandStream& out);
  bool poll(const std::uint32_t* dw, CommandStream& out);
  bool poll64(const std::uint32_t* dw, CommandStream& out);
  bool inside(const char* what, std::uint64_t address, std::uint64_t bytes, bool writes);
  bool bad(std::string cause);

  device::RingHandle ring_;
  const core::WindowSet& windows_;
  std::uint64_t position_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> sums_; // of each word that was added to
  std::size_t hint_ = 0;
  core::Status error_;
};

} // namespace ferry::nvidia
