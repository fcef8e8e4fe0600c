// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "lib/base/error.hpp"

namespace ferry::core {

// How a rank waits. Spinning costs nothing while every rank has a core of its own; with more ranks
// than cores the waiter must give way almost at once.
struct WaitPolicy {
  int spins = 50; // pauses before the first yield
  double yield_seconds = 5e-4; // yielding before the first sleep
  double warn_after = 30; // seconds; 0 = never
  double timeout = 0; // seconds; 0 = none
};

// What a wait needs from its surroundings; called on the slow path only.
class WaitContext {
 public:
  virtual ~WaitContext() = default;
  // Serve others: the MPI below, operations that are in flight on other communicators.
  virtual void poke() = 0;
  // Sleep until a peer wakes this rank or `seconds` have passed, unless `ready` is true once this
  // rank has announced that it sleeps.
  virtual void sleep(double seconds, bool (*ready)(void*), void* look) = 0;
  // An error when what is waited for can no longer come (a peer died).
  virtual Status check_peers() = 0;
  // Collective, communicator, epoch, step, peer, expected and seen, for people.
  [[nodiscard]] virtual std::string what() const = 0;
  // What ranks did before, in lines; empty when nobody has kept it.
  [[nodiscard]] virtual std::string history() const { return {}; }
};

enum class Poll { pending, ready };

// The slow side of a wait: decides between pause, yield and sleep, and ends it with an error.
class Backoff {
 public:
  Backoff(const WaitPolicy& policy, WaitContext& context) : policy_(policy), context_(context) {}
  // Called after each unsuccessful look; an error ends the wait.
  [[nodiscard]] Status pause(bool (*ready)(void*), void* look);

 private:
  [[nodiscard]] Status slow_pause(bool (*ready)(void*), void* look);
  [[nodiscard]] std::string report(const std::string& separator) const;
  void warn(double waited);

  const WaitPolicy& policy_;
  WaitContext& context_;
  int attempts_ = 0;
  double since_ = 0;
  double next_check_ = 0;
  bool warned_ = false;
};

// The one bounded wait helper: looks, pauses, yields, sleeps; ends when `look` is ready, a peer
// died, or the time limit has passed. It never returns ok without `look` having said ready; after
// that `look` may be called once more and must say ready again.
template <class Look>
[[nodiscard]] Status wait_until(const WaitPolicy& policy, WaitContext& context, Look&& look) {
  Backoff backoff(policy, context);
  const auto ready = [](void* self) {
    return (*static_cast<std::remove_reference_t<Look>*>(self))() == Poll::ready;
  };
  for (;;) {
    if (look() == Poll::ready) return {};
    if (Status status = backoff.pause(ready, std::addressof(look)); !status.ok()) return status;
  }
}

} // namespace ferry::core
