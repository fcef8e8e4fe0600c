// SPDX-License-Identifier: MIT
#include "lib/engine/window.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "lib/base/error.hpp"

namespace ferry::core {

void WindowSet::add(const Window& window) {
  const bool wraps = window.bytes > std::numeric_limits<std::uint64_t>::max() - window.base;
  if (window.bytes == 0 || wraps || window.pid < 0) {
    throw Failure(
        ErrorKind::argument,
        std::string("window ") + window.name + " has no bytes, wraps around or names no process");
  }
  const auto by_base = [](const Window& a, const Window& b) { return a.base < b.base; };
  windows_.insert(std::upper_bound(windows_.begin(), windows_.end(), window, by_base), window);
  reach_.clear();
  std::uint64_t reach = 0;
  for (const Window& w : windows_) {
    reach = std::max(reach, w.base + w.bytes);
    reach_.push_back(reach);
  }
}

void WindowSet::clear() noexcept {
  windows_.clear();
  reach_.clear();
}

// From the last window that begins at or below the address downwards, until none further down
// reaches that high. Without overlaps the first one decides.
const Window* WindowSet::search(
    std::uint64_t address, std::uint64_t bytes, bool write, std::size_t& hint) const noexcept {
  const auto after = std::upper_bound(
      windows_.begin(), windows_.end(), address,
      [](std::uint64_t at, const Window& w) { return at < w.base; });
  for (auto i = static_cast<std::size_t>(after - windows_.begin()); i > 0; --i) {
    if (reach_[i - 1] <= address) return nullptr;
    if (!holds(windows_[i - 1], address, bytes, write)) continue;
    hint = i - 1;
    return &windows_[hint];
  }
  return nullptr;
}

} // namespace ferry::core
