// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "lib/base/error.hpp"
#include "lib/base/wait.hpp"

namespace ferry::amd {

// A wait for hardware, where nobody wakes the waiter and no peer can be asked.
class Patience final : public core::WaitContext {
 public:
  explicit Patience(std::function<std::string()> what) : what_(std::move(what)) {}
  void poke() override {}
  void sleep(double seconds, bool (*ready)(void*), void* look) override;
  core::Status check_peers() override { return {}; }
  [[nodiscard]] std::string what() const override { return what_(); }

 private:
  std::function<std::string()> what_;
};

// Ends with an error of kind timeout after `seconds`, which says what(); 0: never.
template <class What, class Look>
[[nodiscard]] core::Status wait_patiently(What what, double seconds, Look look) {
  Patience context(std::move(what));
  core::WaitPolicy policy;
  policy.warn_after = 0;
  policy.timeout = seconds;
  return core::wait_until(policy, context, look);
}

} // namespace ferry::amd
