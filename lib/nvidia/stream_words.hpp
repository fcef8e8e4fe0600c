// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/nvidia/handles.hpp"
#include "lib/nvidia/kernels.hpp"

namespace ferry::nvidia {

// Waits for words and raises words in the order of a stream, for a plan's starts. The value of a
// word is epoch * scale + offset. As long as no graph replays the plan, the host knows the epoch
// and the stream does it with memory operations, which need no room on the GPU. From the first
// capture on, the epoch is counted in device memory and small kernels do it.
class StreamWords {
 public:
  struct Value {
    std::uint64_t scale = 1;
    std::int64_t offset = 0;
  };

  StreamWords() = default;
  StreamWords(std::uint64_t* started, const Patience& patience)
      : started_(started), patience_(patience) {}

  // Before the operations of a start are queued; captured: the stream is being captured.
  void begin(bool captured) { counted_ = counted_ || captured; }
  [[nodiscard]] bool counted() const { return counted_; }

  // Advances the epoch, for everything that follows on this stream, then raises words to it.
  void advance(hipStream_t stream, std::span<std::uint64_t* const> words);
  void wait(hipStream_t stream, std::span<const std::uint64_t* const> words, Value value) const;
  void raise(hipStream_t stream, std::span<std::uint64_t* const> words, Value value) const;

  // Without any plan: memory operations with a value that the host knows.
  static void wait_for(hipStream_t stream, const std::uint64_t* word, std::uint64_t value);
  static void write(hipStream_t stream, std::span<std::uint64_t* const> words, std::uint64_t value);

 private:
  void gate(
      hipStream_t stream, std::span<const std::uint64_t* const> waits,
      std::span<std::uint64_t* const> raises, Value value, bool advance) const;

  std::uint64_t* started_ = nullptr;
  Patience patience_;
  std::uint64_t epoch_ = 0;
  bool counted_ = false;
};

} // namespace ferry::nvidia
