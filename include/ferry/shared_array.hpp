// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include <mpi.h>

#include <ferry/ferry.h>
#include <ferry/buffers.hpp>
#include <ferry/handles.hpp>

namespace ferry {

/// Owner of zeroed memory that the other ranks of the node map, which saves Ferry one copy.
/// Move-only; making one is local. Must outlive the plans that use it. Throws Error when there is
/// no such memory left.
template <Element T>
class SharedArray {
 public:
  SharedArray() = default;
  explicit SharedArray(std::size_t count) : count_(count) {
    constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<MPI_Aint>::max());
    if (count > kMost / sizeof(T)) {
      throw Error(
          MPI_ERR_NO_MEM, "SharedArray of " + std::to_string(count) + " elements of " +
                              std::to_string(sizeof(T)) + " bytes: too large");
    }
    if (count > 0) detail::check(ferry_alloc(static_cast<MPI_Aint>(count * sizeof(T)), &data_));
  }
  SharedArray(SharedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  SharedArray& operator=(SharedArray&& other) noexcept {
    if (this != &other) {
      release();
      data_ = std::exchange(other.data_, nullptr);
      count_ = std::exchange(other.count_, 0);
    }
    return *this;
  }
  ~SharedArray() { release(); }

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + count_; }
  [[nodiscard]] const T* begin() const noexcept { return data_; }
  [[nodiscard]] const T* end() const noexcept { return data_ + count_; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }

 private:
  void release() noexcept {
    if (data_ != nullptr) ferry_free(data_);
  }

  T* data_ = nullptr;
  std::size_t count_ = 0;
};

} // namespace ferry
