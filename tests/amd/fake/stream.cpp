// SPDX-License-Identifier: MIT
#include <utility>

#include "tests/amd/fake/rocr.hpp"

namespace ferry::test {

FakeStream::FakeStream() : thread_([this] { run(); }) {}

FakeStream::~FakeStream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FakeStream::push(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (capturing_) return graph_.push_back(std::move(work));
    work_.push(std::move(work));
  }
  changed_.notify_all();
}

void FakeStream::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty() && !busy_; });
}

bool FakeStream::idle() {
  const std::lock_guard lock(mutex_);
  return work_.empty() && !busy_;
}

bool FakeStream::capturing() {
  const std::lock_guard lock(mutex_);
  return capturing_;
}

void FakeStream::begin_capture() {
  const std::lock_guard lock(mutex_);
  capturing_ = true;
  graph_.clear();
}

void FakeStream::end_capture() {
  const std::lock_guard lock(mutex_);
  capturing_ = false;
}

void FakeStream::replay() {
  std::vector<std::function<void()>> graph;
  {
    const std::lock_guard lock(mutex_);
    graph = graph_;
  }
  for (const auto& work : graph) push(work);
}

void FakeStream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !work_.empty(); });
    if (work_.empty()) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop();
    busy_ = true;
    lock.unlock();
    work();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

} // namespace ferry::test
