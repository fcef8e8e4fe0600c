// SPDX-License-Identifier: MIT
#include "lib/exec/active.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

namespace ferry::core {
namespace {

struct Entry {
  std::shared_ptr<Active> active;
  int count = 0;
};

struct Registry {
  std::mutex mutex;
  std::vector<Entry> entries;
};

Registry& registry() {
  static auto* const registry = new Registry;  // used until the process ends
  return *registry;
}

auto find(Registry& registry, const Active* active) {
  return std::find_if(registry.entries.begin(), registry.entries.end(), [&](const Entry& entry) {
    return entry.active.get() == active;
  });
}

}  // namespace

void enter_active(const std::shared_ptr<Active>& active) {
  const std::lock_guard lock(registry().mutex);
  const auto found = find(registry(), active.get());
  if (found != registry().entries.end()) {
    ++found->count;
  } else {
    registry().entries.push_back({active, 1});
  }
}

void leave_active(const Active* active) {
  std::shared_ptr<Active> last;  // destroyed without the lock
  const std::lock_guard lock(registry().mutex);
  const auto found = find(registry(), active);
  if (found == registry().entries.end() || --found->count > 0) return;
  last = std::move(found->active);
  registry().entries.erase(found);
}

void serve_all() {
  std::vector<std::shared_ptr<Active>> all;
  {
    const std::lock_guard lock(registry().mutex);
    for (const Entry& entry : registry().entries) all.push_back(entry.active);
  }
  for (const auto& active : all) active->serve();
}

}  // namespace ferry::core
