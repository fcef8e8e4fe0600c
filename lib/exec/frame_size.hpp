// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

namespace ferry::core {

// How many bytes the frames of the next irregular alltoall hold. Decided by the longest block of
// earlier calls, which all ranks learn from the frames, so alike on all of them: it grows at once
// and shrinks when a number of calls could have done with less.
class FrameSize {
 public:
  explicit FrameSize(std::uint64_t most) : most_(most), bytes_(step(0)) {}
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t most() const { return most_; }
  // Once a call: true when it does without frames, since those before were tried in vain.
  [[nodiscard]] bool pass() {
    if (straight_ == 0) return false;
    --straight_;
    return true;
  }
  // After a call with frames, or one for which they were too short.
  void note(std::uint64_t longest) {
    if (longest > most_) {
      straight_ = kStraight;
      restart(0);
    } else if (longest > bytes_) {
      restart(longest);
    } else {
      longest_ = std::max(longest_, longest);
      if (++calls_ == kCalls) restart(longest_);
    }
  }
  // Frames of this size need too much room. False when there is no smaller one.
  [[nodiscard]] bool shrink() {
    if (bytes_ <= kLeast) return false;
    most_ = std::max(bytes_ / kFactor, kLeast);
    restart(0);
    return true;
  }

 private:
  static constexpr std::uint64_t kLeast = 256;
  static constexpr std::uint64_t kFactor = 4;
  static constexpr int kCalls = 16;
  static constexpr int kStraight = 15;

  [[nodiscard]] std::uint64_t step(std::uint64_t longest) const {
    std::uint64_t bytes = kLeast;
    while (bytes < longest) bytes *= kFactor;
    return std::min(bytes, most_);
  }
  void restart(std::uint64_t longest) {
    bytes_ = step(longest);
    longest_ = 0;
    calls_ = 0;
  }

  std::uint64_t most_;
  std::uint64_t bytes_;
  std::uint64_t longest_ = 0; // of the calls since
  int calls_ = 0;
  int straight_ = 0;
};

} // namespace ferry::core
