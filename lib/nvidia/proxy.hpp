// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/ring.hpp"
#include "lib/engine/window.hpp"
#include "lib/nvidia/owners.hpp"
#include "lib/nvidia/translator.hpp"

namespace ferry::nvidia {

// A ring that kernels of this device fill and a host thread empties: packets and doorbell lie in
// pinned host memory, what only kernels look at in device memory.
class ProxyRing {
 public:
  // bytes is a power of two. One thread at a time posts to it.
  ProxyRing(std::size_t bytes, core::WindowSet windows);
  ~ProxyRing();
  ProxyRing(const ProxyRing&) = delete;
  ProxyRing& operator=(const ProxyRing&) = delete;
  [[nodiscard]] const device::RingHandle& handle() const { return handle_; }
  [[nodiscard]] core::Status error() const;

 private:
  friend class Proxy;
  void* host_ = nullptr;
  DeviceBlock words_;
  device::RingHandle handle_;
  core::WindowSet windows_;
  std::unique_ptr<Translator> translator_;
  std::unique_ptr<CommandStream> stream_;
  core::Status broken_; // written before failed_
  std::atomic<bool> failed_{false};
};

// The host thread behind the rings of one device. While packets come it looks all the time, then it
// naps, longer and longer; without rings it sleeps.
class Proxy {
 public:
  explicit Proxy(int device);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  void add(ProxyRing& ring);
  void remove(ProxyRing& ring); // afterwards nobody looks at it; what was queued ends by itself

 private:
  void run(const std::stop_token& stop);
  [[nodiscard]] bool look();
  [[nodiscard]] static bool look_at(ProxyRing& ring);

  const int device_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<ProxyRing*> rings_;
  std::jthread thread_;
};

// Operations of a stream of the current device.
[[nodiscard]] std::unique_ptr<CommandStream> make_command_stream();

} // namespace ferry::nvidia
