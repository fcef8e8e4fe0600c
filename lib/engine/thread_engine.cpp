// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "device/platform.hpp"
#include "lib/engine/engine.hpp"

namespace ferry::core {

namespace {

using Activity = EngineLink::Activity;
using std::chrono::microseconds;

constexpr int kTurn = 16; // packets of one queue before the next one has its turn
constexpr int kSpins = 256; // looks at an empty list before a worker yields
constexpr int kYields = 32; // yields before it sleeps
constexpr int kIdlePasses = 64; // yields while every queue is blocked, before it naps
constexpr microseconds kFirstNap{5};
constexpr microseconds kLongestNap{100};

// Queues with work, first come first served, linked through the queues themselves.
class ReadyList {
 public:
  void push(Queue* queue) {
    queue->link().next = nullptr;
    (last_ != nullptr ? last_->link().next : first_) = queue;
    last_ = queue;
    size_.fetch_add(1, std::memory_order_relaxed);
  }

  Queue* pop() {
    Queue* const queue = first_;
    if (queue != nullptr) unlink(nullptr, queue);
    return queue;
  }

  void remove(Queue* queue) {
    Queue* before = nullptr;
    for (Queue* at = first_; at != nullptr && at != queue; at = at->link().next) before = at;
    unlink(before, queue);
  }

  // The only call that needs no lock; a hint for spinning workers.
  [[nodiscard]] int size() const { return size_.load(std::memory_order_relaxed); }

 private:
  void unlink(Queue* before, Queue* queue) {
    (before != nullptr ? before->link().next : first_) = queue->link().next;
    if (last_ == queue) last_ = before;
    size_.fetch_sub(1, std::memory_order_relaxed);
  }

  Queue* first_ = nullptr;
  Queue* last_ = nullptr;
  std::atomic<int> size_{0};
};

class ThreadEngine final : public Engine {
 public:
  ThreadEngine(int threads, SignalHook wake_owner) : wake_owner_(wake_owner) {
    for (int i = 0; i < threads; ++i) {
      workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
  }

  const char* name() const override { return "threads"; }

  void submit(std::span<Queue* const> queues) override {
    {
      const std::lock_guard lock(mutex_);
      for (Queue* const queue : queues) enqueue(queue);
      ++submissions_;
    }
    work_.notify_all();
  }

  QueueState progress(std::span<Queue* const> queues) override {
    bool drained = true;
    for (const Queue* const queue : queues) {
      if (queue->failed()) return QueueState::failed;
      drained &= queue->drained();
    }
    return drained ? QueueState::drained : QueueState::blocked;
  }

  // A worker returns from a queue after one turn at most, so this wait ends.
  void retire(std::span<Queue* const> queues) override {
    std::unique_lock lock(mutex_);
    for (Queue* const queue : queues) {
      EngineLink& link = queue->link();
      if (link.activity == Activity::queued) {
        ready_.remove(queue);
        link.activity = Activity::idle;
      }
      link.retiring = true;
      retired_.wait(lock, [&] { return link.activity == Activity::idle; });
      link.retiring = false;
    }
  }

 private:
  void enqueue(Queue* queue) {
    EngineLink& link = queue->link();
    if (link.activity == Activity::running) link.activity = Activity::resubmitted;
    if (link.activity != Activity::idle) return;
    link.activity = Activity::queued;
    ready_.push(queue);
  }

  void work(const std::stop_token& stop) {
    Pace pace;
    for (Queue* queue = take(stop); queue != nullptr; queue = take(stop)) {
      const std::uint64_t before = queue->consumed();
      const QueueState state = queue->consume(kTurn);
      const bool moved = queue->consumed() != before;
      give_back(queue, state);
      // From here on the queue may be gone.
      if (moved || state == QueueState::failed) pace = Pace{};
      if (state == QueueState::blocked && !moved) rest(stop, pace);
    }
  }

  // The next queue, for this worker alone; null when the engine ends.
  Queue* take(const std::stop_token& stop) {
    for (int i = 0; i < kSpins + kYields && ready_.size() == 0; ++i) {
      if (i < kSpins) device::cpu_relax();
      if (i >= kSpins) std::this_thread::yield();
    }
    std::unique_lock lock(mutex_);
    work_.wait(lock, stop, [this] { return ready_.size() != 0; });
    if (stop.stop_requested()) return nullptr;
    Queue* const queue = ready_.pop();
    queue->link().activity = Activity::running;
    return queue;
  }

  // Order: the queue is idle before its owner wakes, since the owner may retire and free it then.
  void give_back(Queue* queue, QueueState state) {
    const bool over = state == QueueState::drained || state == QueueState::failed;
    const int owner = queue->owner();
    {
      const std::lock_guard lock(mutex_);
      EngineLink& link = queue->link();
      const bool again = link.activity == Activity::resubmitted || !over;
      link.activity = Activity::idle;
      if (link.retiring) retired_.notify_all();
      if (again && !link.retiring) enqueue(queue);
    }
    if (over) wake_owner_(owner);
  }

  // How long this worker has found nothing but blocked queues.
  struct Pace {
    int fruitless = 0;
    microseconds nap = kFirstNap;
  };

  // A pass over the blocked queues, then a yield, since whoever raises the signal may need this
  // core; in the end short naps. New work ends a nap, a raised signal does not.
  void rest(const std::stop_token& stop, Pace& pace) {
    const int queues = std::max(1, ready_.size());
    if (++pace.fruitless % queues != 0) return;
    if (pace.fruitless / queues < kIdlePasses) return std::this_thread::yield();
    std::unique_lock lock(mutex_);
    const std::uint64_t seen = submissions_;
    work_.wait_for(lock, stop, pace.nap, [&] { return submissions_ != seen; });
    pace.nap = std::min(pace.nap * 2, kLongestNap);
  }

  const SignalHook wake_owner_;
  std::mutex mutex_; // guards ready_ and the links of all queues
  std::condition_variable_any work_;
  std::condition_variable_any retired_;
  ReadyList ready_;
  std::uint64_t submissions_ = 0;
  std::vector<std::jthread> workers_; // last: they stop before anything they use
};

} // namespace

std::unique_ptr<Engine> make_thread_engine(int threads, SignalHook wake_owner) {
  if (threads < 1) {
    throw Failure(ErrorKind::argument, fmt::format("an engine of {} threads", threads));
  }
  return std::make_unique<ThreadEngine>(threads, wake_owner);
}

} // namespace ferry::core
