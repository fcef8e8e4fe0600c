// SPDX-License-Identifier: MIT
#include "lib/interpose/helper.hpp"

#include <mpi.h>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "lib/base/inside.hpp"
#include "lib/exec/active.hpp"
#include "lib/interpose/token.hpp"

namespace ferry::interpose {
namespace {

constexpr auto kTick = std::chrono::milliseconds(1); // between two looks while something is started
constexpr auto kIdleTick = std::chrono::milliseconds(100); // the most that a lost wake-up costs
constexpr int kIdleTicks = 50; // before it sleeps until it is woken

class Helper {
 public:
  void wake() {
    if (awake_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    if (!running_ && !stopped_) begin();
    awake_.store(true, std::memory_order_relaxed);
    wake_up_.notify_one();
  }

 private:
  // MPI_Finalize begins with the attributes of MPI_COMM_SELF; sessions have none, and no helper.
  void begin() {
    int up = 0;
    PMPI_Initialized(&up);
    stopped_ = up == 0;
    if (stopped_) return;
    int keyval = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, stop, &keyval, nullptr);
    PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, this);
    PMPI_Comm_free_keyval(&keyval);
    running_ = true;
    std::thread([this] { run(); }).detach();
  }

  static int stop(MPI_Comm, int, void* self, void*) {
    auto* helper = static_cast<Helper*>(self);
    const std::lock_guard lock(helper->mutex_);
    helper->stopped_ = true;
    helper->wake_up_.notify_one();
    return MPI_SUCCESS;
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (int idle = 0; !stopped_; ++idle) {
      if (token_counts.started.load(std::memory_order_relaxed) > 0) {
        const core::Inside scope;
        core::serve_all();
        idle = 0;
      }
      awake_.store(idle < kIdleTicks, std::memory_order_relaxed);
      wake_up_.wait_for(lock, idle < kIdleTicks ? kTick : kIdleTick);
    }
  }

  std::mutex mutex_; // held while it serves, so that stop() returns when MPI is left alone
  std::condition_variable wake_up_;
  std::atomic<bool> awake_{false};
  bool running_ = false;
  bool stopped_ = false;
};

} // namespace

void wake_helper() {
  static auto* const helper = new Helper; // its thread runs until the process ends
  helper->wake();
}

} // namespace ferry::interpose
