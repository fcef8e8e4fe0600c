// SPDX-License-Identifier: MIT
#include <cstdint>

#include "lib/engine/engine.hpp"

namespace ferry::core {

namespace {

// Packets of one queue before the next one has its turn: enough to get through a signal and what
// waits for it, few enough that no queue starves the others.
constexpr int kTurn = 8;

class InlineEngine final : public Engine {
 public:
  const char* name() const override { return "inline"; }

  void submit(std::span<Queue* const>) override {}

  QueueState progress(std::span<Queue* const> queues) override {
    bool advanced = false;
    bool blocked = false;
    bool left = false;
    for (Queue* const queue : queues) {
      const std::uint64_t before = queue->consumed();
      const QueueState state = queue->consume(kTurn);
      if (state == QueueState::failed) return state;
      advanced |= queue->consumed() != before;
      blocked |= state == QueueState::blocked;
      left |= state == QueueState::advanced;
    }
    if (left || (blocked && advanced)) return QueueState::advanced;
    return blocked ? QueueState::blocked : QueueState::drained;
  }

  void retire(std::span<Queue* const>) override {}
};

} // namespace

std::unique_ptr<Engine> make_inline_engine() {
  return std::make_unique<InlineEngine>();
}

} // namespace ferry::core
