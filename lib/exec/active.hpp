// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

namespace ferry::core {

// Something with operations in flight that other waits must serve, as MPI's progress rule asks.
class Active {
 public:
  virtual ~Active() = default;
  // Move on without waiting; returns at once when another thread is at it.
  virtual void serve() = 0;
};

// Between these two calls every wait of this process serves it. Counted; any thread.
void enter_active(const std::shared_ptr<Active>& active);
void leave_active(const Active* active);
void serve_all();

}  // namespace ferry::core
