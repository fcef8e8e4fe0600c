// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace ferry::core {

// Working memory of a collective. Large pieces come from the heap, so that peers write into them
// directly, and are kept for the next use: at most four of them stay with the process.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::uint64_t bytes); // throws std::bad_alloc
  ~Scratch();
  Scratch(Scratch&& other) noexcept { *this = std::move(other); }
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(shared_, other.shared_);
    return *this;
  }

  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool shared_ = false;
};

} // namespace ferry::core
