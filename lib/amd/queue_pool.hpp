// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/amd/engine_map.hpp"
#include "lib/amd/queue.hpp"

namespace ferry::amd {

class QueuePool;

// A queue for one plan, until the plan ends. Engines have few queues, so they go back to a pool.
class QueueLease {
 public:
  QueueLease() = default;
  QueueLease(QueuePool& pool, std::unique_ptr<SdmaQueue> queue, bool fresh)
      : pool_(&pool), queue_(std::move(queue)), fresh_(fresh) {}
  QueueLease(QueueLease&& other) noexcept = default;
  QueueLease& operator=(QueueLease&& other) noexcept;
  ~QueueLease();

  [[nodiscard]] SdmaQueue& operator*() const { return *queue_; }
  [[nodiscard]] SdmaQueue* operator->() const { return queue_.get(); }
  // Made for this lease, and not tried yet.
  [[nodiscard]] bool fresh() const { return fresh_; }

 private:
  QueuePool* pool_ = nullptr;
  std::unique_ptr<SdmaQueue> queue_;
  bool fresh_ = false;
};

// The queues of this process on one provider. Only what is missing is made; what plans leave, idle
// and sound, is used again.
class QueuePool {
 public:
  explicit QueuePool(QueueProvider& provider) : provider_(provider) {}

  // On the first of these engines that has a queue. Throws Failure, with what each said.
  [[nodiscard]] QueueLease lease(
      const Gpu& gpu, const EngineChoice& choice, std::size_t ring_bytes);
  // This engine does not work: nothing is made on it any more.
  void ban(int node, std::uint32_t engine);
  [[nodiscard]] BadEngines banned(int node) const;

  [[nodiscard]] QueueProvider& provider() const { return provider_; }
  [[nodiscard]] std::size_t made() const;
  [[nodiscard]] std::size_t idle() const;

 private:
  friend class QueueLease;
  void give_back(std::unique_ptr<SdmaQueue> queue);
  std::unique_ptr<SdmaQueue> take(int node, std::uint32_t engine, std::size_t ring_bytes);

  QueueProvider& provider_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<SdmaQueue>> idle_;
  std::map<int, BadEngines> banned_;
  std::size_t made_ = 0;
};

} // namespace ferry::amd
