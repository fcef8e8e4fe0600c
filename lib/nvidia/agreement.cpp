// SPDX-License-Identifier: MIT
#include "lib/nvidia/agreement.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <random>

namespace ferry::nvidia {

void Trouble::set(const core::Status& status) {
  kind = static_cast<std::uint32_t>(status.kind);
  std::snprintf(cause, sizeof cause, "%s", status.cause.c_str());
  std::snprintf(remedy, sizeof remedy, "%s", status.remedy.c_str());
}

void agree(const std::vector<Trouble>& troubles) {
  for (std::size_t rank = 0; rank < troubles.size(); ++rank) {
    const Trouble& t = troubles[rank];
    if (t.kind == 0) continue;
    throw core::Failure(
        static_cast<core::ErrorKind>(t.kind), fmt::format("rank {}: {}", rank, t.cause), t.remedy);
  }
}

std::uint64_t process_number() {
  static const std::uint64_t number = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | (random() ^ static_cast<std::uint32_t>(getpid()));
  }();
  return number;
}

} // namespace ferry::nvidia
