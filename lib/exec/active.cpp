// SPDX-License-Identifier: MIT
#include "lib/exec/active.hpp"

#include <mutex>
#include <vector>

namespace ferry::core {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<Active>> entries;
};

Registry& registry() {
  static auto* const registry = new Registry; // used until the process ends
  return *registry;
}

} // namespace

void register_active(const std::shared_ptr<Active>& active) {
  const std::lock_guard lock(registry().mutex);
  std::erase_if(registry().entries, [](const auto& entry) { return entry.expired(); });
  registry().entries.push_back(active);
}

void serve_all() {
  std::vector<std::shared_ptr<Active>> busy; // served, and perhaps destroyed, without the lock
  {
    const std::lock_guard lock(registry().mutex);
    for (const auto& entry : registry().entries) {
      auto active = entry.lock();
      if (active != nullptr && active->busy()) busy.push_back(std::move(active));
    }
  }
  for (const auto& active : busy) active->serve();
}

} // namespace ferry::core
