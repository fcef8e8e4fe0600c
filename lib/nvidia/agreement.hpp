// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/error.hpp"

namespace ferry::nvidia {

// What went wrong on a rank, told to all of them. Sent as bytes.
struct Trouble {
  std::uint32_t kind = 0;
  char cause[240] = {};
  char remedy[240] = {};

  void set(const core::Status& status);
};

// What can go wrong on one rank becomes part of what it tells.
template <class Step>
[[nodiscard]] Trouble attempt(Step&& step) {
  Trouble trouble;
  try {
    step();
  } catch (const core::Failure& failure) {
    trouble.set(failure.status());
  } catch (const std::exception& error) {
    trouble.set({core::ErrorKind::no_memory, error.what(), {}});
  }
  return trouble;
}

// The first trouble of any rank becomes the error of all.
void agree(const std::vector<Trouble>& troubles);

// A number that no other process has.
[[nodiscard]] std::uint64_t process_number();

} // namespace ferry::nvidia
