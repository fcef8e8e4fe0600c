// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry::core {

// Memory that packets may touch, at engine addresses base .. base + bytes.
struct Window {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
  bool writable = false;
  int owner = 0; // rank whose memory it is
  int pid = 0; // 0: engine addresses are local pointers
  std::uint64_t remote_base = 0; // pid > 0: where base lies in that process
  const char* name = "";
};

// Built before the queues that use it run, then only read: any number of threads may search it.
class WindowSet {
 public:
  // Throws Failure when the window has no bytes, wraps around or has a negative pid.
  void add(const Window& window);
  void clear() noexcept;
  [[nodiscard]] std::span<const Window> windows() const noexcept { return windows_; }

  // A window that holds all of [address, address + bytes) and, for write, is writable; null if
  // there is none. hint is the caller's memory of its last hit, any value is fine.
  [[nodiscard]] const Window* find(
      std::uint64_t address, std::uint64_t bytes, bool write, std::size_t& hint) const noexcept {
    if (hint < windows_.size() && holds(windows_[hint], address, bytes, write)) {
      return &windows_[hint];
    }
    return search(address, bytes, write, hint);
  }
  [[nodiscard]] const Window* find(
      std::uint64_t address, std::uint64_t bytes, bool write) const noexcept {
    std::size_t hint = 0;
    return find(address, bytes, write, hint);
  }

 private:
  static bool holds(
      const Window& w, std::uint64_t address, std::uint64_t bytes, bool write) noexcept {
    return address >= w.base && bytes <= w.bytes && address - w.base <= w.bytes - bytes &&
           (w.writable || !write);
  }
  const Window* search(
      std::uint64_t address, std::uint64_t bytes, bool write, std::size_t& hint) const noexcept;

  std::vector<Window> windows_; // by base
  std::vector<std::uint64_t> reach_; // reach_[i]: the highest end of windows 0 .. i
};

} // namespace ferry::core
