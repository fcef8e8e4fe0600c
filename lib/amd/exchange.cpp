// SPDX-License-Identifier: MIT
#include "lib/amd/exchange.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

namespace ferry::amd {
namespace {

struct Vote {
  std::int32_t kind = 0;
  char cause[252] = {};
  char remedy[128] = {};
};

template <std::size_t N>
void put(char (&to)[N], const std::string& text) {
  std::memcpy(to, text.data(), std::min(text.size(), N - 1));
}

} // namespace

core::Status agree(core::DeviceTeam& team, const core::Status& mine) {
  Vote vote;
  vote.kind = static_cast<std::int32_t>(mine.kind);
  put(vote.cause, mine.cause);
  put(vote.remedy, mine.remedy);
  const std::vector<Vote> votes = gather(team, vote);
  const auto no =
      std::find_if(votes.begin(), votes.end(), [](const Vote& v) { return v.kind != 0; });
  if (no == votes.end()) return {};
  return {
      static_cast<core::ErrorKind>(no->kind),
      fmt::format("rank {}: {}", no - votes.begin(), no->cause), no->remedy};
}

} // namespace ferry::amd
