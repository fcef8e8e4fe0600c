// SPDX-License-Identifier: MIT
#include "lib/amd/queue_pool.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "lib/amd/patience.hpp"

namespace ferry::amd {
namespace {

constexpr double kDrainSeconds = 1; // for what is behind the last packet that matters
// So that most plans can use any queue, and some hundred starts can be programmed ahead.
constexpr std::size_t kSmallestRing = 256 * 1024;

} // namespace

QueueLease& QueueLease::operator=(QueueLease&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(queue_, other.queue_);
  std::swap(fresh_, other.fresh_);
  return *this;
}

QueueLease::~QueueLease() {
  if (queue_ != nullptr) pool_->give_back(std::move(queue_));
}

// A queue that still holds packets cannot be used again: they would run first.
void QueuePool::give_back(std::unique_ptr<SdmaQueue> queue) {
  core::Status status;
  const auto look = [&] {
    status = queue->progress();
    return queue->drained() || !status.ok() ? core::Poll::ready : core::Poll::pending;
  };
  const bool idle =
      !queue->given_up() && wait_patiently([&] { return queue->name(); }, kDrainSeconds, look).ok();
  if (!idle || !status.ok()) {
    queue->give_up();
    return;
  }
  const std::lock_guard lock(mutex_);
  if (!banned_[queue->node()].contains(queue->engine())) idle_.push_back(std::move(queue));
}

std::unique_ptr<SdmaQueue> QueuePool::take(int node, std::uint32_t engine, std::size_t ring_bytes) {
  const std::lock_guard lock(mutex_);
  const auto fits = [&](const std::unique_ptr<SdmaQueue>& queue) {
    return queue->node() == node && queue->engine() == engine && queue->ring().bytes >= ring_bytes;
  };
  const auto found = std::find_if(idle_.begin(), idle_.end(), fits);
  if (found == idle_.end()) return nullptr;
  std::unique_ptr<SdmaQueue> queue = std::move(*found);
  idle_.erase(found);
  return queue;
}

QueueLease QueuePool::lease(const Gpu& gpu, const EngineChoice& choice, std::size_t ring_bytes) {
  const std::size_t bytes = std::max(ring_bytes, kSmallestRing);
  std::vector<std::uint32_t> engines = choice.engines;
  if (!engines.empty() && !provider_.chooses_engines()) engines = {kAnyEngine};
  const BadEngines bad = banned(gpu.node);
  std::erase_if(engines, [&](std::uint32_t engine) { return bad.contains(engine); });
  for (const std::uint32_t engine : engines) {
    if (auto queue = take(gpu.node, engine, bytes)) return {*this, std::move(queue), false};
  }
  std::string said;
  for (const std::uint32_t engine : engines) {
    try {
      auto queue = provider_.create(gpu, engine, bytes);
      const std::lock_guard lock(mutex_);
      ++made_;
      return {*this, std::move(queue), true};
    } catch (const core::Failure& failure) {
      said = failure.status().cause;
      if (failure.status().kind != core::ErrorKind::no_memory) throw;
    }
  }
  if (said.empty()) said = choice.why;
  throw core::Failure(
      core::ErrorKind::no_memory, fmt::format("no queue is left on {}: {}", gpu.name(), said),
      "free plans that are not used any more, or run fewer processes on this GPU");
}

void QueuePool::ban(int node, std::uint32_t engine) {
  const std::lock_guard lock(mutex_);
  banned_[node].insert(engine);
  std::erase_if(idle_, [&](const std::unique_ptr<SdmaQueue>& queue) {
    return queue->node() == node && queue->engine() == engine;
  });
}

BadEngines QueuePool::banned(int node) const {
  const std::lock_guard lock(mutex_);
  const auto found = banned_.find(node);
  return found == banned_.end() ? BadEngines{} : found->second;
}

std::size_t QueuePool::made() const {
  const std::lock_guard lock(mutex_);
  return made_;
}

std::size_t QueuePool::idle() const {
  const std::lock_guard lock(mutex_);
  return idle_.size();
}

} // namespace ferry::amd
