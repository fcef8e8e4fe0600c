// SPDX-License-Identifier: MIT
#include "lib/base/wait.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <cstdio>
#include <sstream>

#include "device/platform.hpp"
#include "lib/base/clock.hpp"

namespace ferry::core {
namespace {

constexpr int kYieldsPerLook = 16; // yields between two looks at clock and MPI
constexpr double kSleepSeconds = 1e-3; // a lost wake-up costs no more than this
constexpr double kCheckSeconds = 0.1; // between two looks whether the peers live

} // namespace

Status Backoff::pause(bool (*ready)(void*), void* look) {
  ++attempts_;
  if (attempts_ <= policy_.spins) {
    device::cpu_relax();
    return {};
  }
  if ((attempts_ - policy_.spins) % kYieldsPerLook != 0) {
    sched_yield();
    return {};
  }
  return slow_pause(ready, look);
}

Status Backoff::slow_pause(bool (*ready)(void*), void* look) {
  const double now = now_seconds();
  if (since_ == 0) {
    since_ = now;
    next_check_ = now + kCheckSeconds;
  }
  context_.poke();
  const double waited = now - since_;
  if (waited > policy_.yield_seconds) {
    context_.sleep(kSleepSeconds, ready, look);
    attempts_ += kYieldsPerLook - 1; // the next unsuccessful look comes straight back here
  } else {
    sched_yield();
  }
  if (now < next_check_) return {};
  next_check_ = now + kCheckSeconds;
  if (Status status = context_.check_peers(); !status.ok()) {
    // What is waited for may have come just before the peer ended.
    return ready(look) ? Status{} : status;
  }
  if (policy_.warn_after > 0 && !warned_ && waited > policy_.warn_after) warn(waited);
  if (policy_.timeout > 0 && waited > policy_.timeout) {
    return {
        ErrorKind::timeout, fmt::format("waited {:.1f} s: {}", waited, report("; ")),
        "see whether that rank still makes the same calls, or raise FERRY_TIMEOUT"};
  }
  return {};
}

// What is waited for, and what ranks did before.
std::string Backoff::report(const std::string& separator) const {
  std::string text = context_.what();
  std::istringstream history(context_.history());
  for (std::string line; std::getline(history, line);) text += separator + line;
  return text;
}

void Backoff::warn(double waited) {
  warned_ = true;
  std::fprintf( // in one piece
      stderr, "ferry: waiting for %.1f s: %s\n", waited, report("\nferry:   ").c_str());
}

} // namespace ferry::core
