// SPDX-License-Identifier: MIT
// Exchanges of ranks that live in one process.
#pragma once

#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/exchange.hpp"

namespace ferry::test {

// Where messages wait, and what they were.
class PostOffice {
 public:
  using Address = std::tuple<int, int, int>; // exchange, sender, receiver

  void bring(const Address& to, const core::ExchangePart& part) {
    const std::lock_guard lock(mutex_);
    const auto* data = static_cast<const std::byte*>(part.data);
    letters_[to].emplace_back(data, data + part.bytes);
    ++messages_;
    bytes_ += part.bytes;
  }
  [[nodiscard]] bool waiting(const Address& at) {
    const std::lock_guard lock(mutex_);
    return !letters_[at].empty();
  }
  // False when the letter is of another length than the receiver expects.
  [[nodiscard]] bool take(const Address& at, const core::ExchangePart& part) {
    const std::lock_guard lock(mutex_);
    auto& letters = letters_[at];
    const bool fits = letters.front().size() == part.bytes;
    if (fits) std::memcpy(part.data, letters.front().data(), part.bytes);
    letters.pop_front();
    return fits;
  }
  [[nodiscard]] bool empty() {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, letters] : letters_) {
      if (!letters.empty()) return false;
    }
    return true;
  }
  // Since the last call.
  struct Traffic {
    std::size_t messages = 0;
    std::size_t bytes = 0;
  };
  Traffic traffic() {
    const std::lock_guard lock(mutex_);
    return {std::exchange(messages_, 0), std::exchange(bytes_, 0)};
  }

 private:
  std::mutex mutex_;
  std::map<Address, std::deque<std::vector<std::byte>>> letters_;
  std::size_t messages_ = 0;
  std::size_t bytes_ = 0;
};

// The how-manieth exchange that a rank sets up fits to the same of all others.
class PostExchange final : public core::Exchange {
 public:
  PostExchange(
      PostOffice& office, int number, int rank, std::vector<core::ExchangePart> sends,
      std::vector<core::ExchangePart> receives)
      : office_(office),
        number_(number),
        rank_(rank),
        sends_(std::move(sends)),
        receives_(std::move(receives)) {}

  void start() override {
    for (const auto& part : sends_) office_.bring({number_, rank_, part.rank}, part);
    open_ = true;
  }
  bool test() override {
    if (!open_) return true;
    for (const auto& part : receives_) {
      if (!office_.waiting({number_, part.rank, rank_})) return false;
    }
    for (const auto& part : receives_) {
      if (!office_.take({number_, part.rank, rank_}, part)) misfit_ = true;
    }
    open_ = false;
    return true;
  }
  [[nodiscard]] bool misfit() const { return misfit_; }

 private:
  PostOffice& office_;
  int number_;
  int rank_;
  std::vector<core::ExchangePart> sends_;
  std::vector<core::ExchangePart> receives_;
  bool open_ = false;
  bool misfit_ = false;
};

} // namespace ferry::test
