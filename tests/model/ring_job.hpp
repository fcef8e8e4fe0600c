// SPDX-License-Identifier: MIT
// Programs of packets written by hand, on rings of the model engine: queues by number, and memory
// that they share.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/packet.hpp"
#include "lib/engine/model_engine.hpp"

namespace ferry::test {

using Dwords = std::vector<std::uint32_t>;

[[nodiscard]] inline std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

// All bytes at once, so that an early reader cannot find what it should by chance.
class RingJob {
 public:
  static constexpr std::size_t kBytes = 512;
  using Area = std::array<unsigned char, kBytes>;

  explicit RingJob(core::ModelSettings settings);
  RingJob(const RingJob&) = delete;
  RingJob& operator=(const RingJob&) = delete;
  ~RingJob();

  // Appends a packet to a queue, which is made when it is first named; not yet published.
  RingJob& copy(
      std::size_t queue, Area& to, const Area& from, std::size_t at = 0,
      std::size_t bytes = kBytes);
  RingJob& add(std::size_t queue, std::uint64_t& word);
  RingJob& poll(std::size_t queue, const std::uint64_t& word, std::uint64_t reference);
  RingJob& fence(std::size_t queue, std::uint64_t& word);
  RingJob& write(std::size_t queue, std::uint64_t& word);
  RingJob& append(std::size_t queue, const Dwords& packet);
  // Queue `queue` waits until this one's rptr says that all before here was consumed.
  RingJob& poll_rptr(std::size_t queue, std::size_t of);

  // Publishes and progresses until all is drained, one has failed, or it has taken too long.
  core::QueueState run();
  void publish();
  core::QueueState turn() { return engine.progress(list_); }
  [[nodiscard]] core::Queue& queue(std::size_t number);

  Area source{}; // a pattern of the seed
  Area second{}; // another
  Area middle{};
  Area sink{};
  Area sink2{};
  std::array<std::uint64_t, 16> words{};
  core::ModelEngine engine;

 private:
  struct Line {
    std::unique_ptr<core::Queue> queue;
    std::uint64_t end = 0; // of what was appended
  };

  std::vector<Line> lines_;
  std::vector<core::Queue*> list_;
  core::WindowSet windows_;
};

} // namespace ferry::test
