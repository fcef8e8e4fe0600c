// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "lib/base/error.hpp"
#include "lib/exec/device_backend.hpp"

namespace ferry::amd {

// Collective: what every rank has to say, by rank.
template <class T>
[[nodiscard]] std::vector<T> gather(core::DeviceTeam& team, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<std::size_t>(team.ranks()));
  team.allgather(&mine, sizeof mine, all.data());
  return all;
}

// Collective: fine when it is on every rank; otherwise what the first rank says that it is not on,
// alike on all ranks.
[[nodiscard]] core::Status agree(core::DeviceTeam& team, const core::Status& mine);

// Runs a step that may fail on one rank only, and agrees on how it went.
template <class Step>
[[nodiscard]] core::Status try_together(core::DeviceTeam& team, Step&& step) {
  core::Status mine;
  try {
    step();
  } catch (const core::Failure& failure) {
    mine = failure.status();
  }
  return agree(team, mine);
}

} // namespace ferry::amd
