// SPDX-License-Identifier: MIT
#include "lib/interpose/mixed.hpp"

#include <fmt/format.h>
#include <sched.h>

#include "lib/base/inside.hpp"
#include "lib/config/config.hpp"
#include "lib/exec/active.hpp"
#include "lib/interpose/progress.hpp"

namespace ferry::interpose {

using core::Poll;
using core::Status;

bool holds_token(int count, const MPI_Request requests[]) {
  if (requests == nullptr) return false;
  for (int i = 0; i < count; ++i) {
    if (requests[i] != MPI_REQUEST_NULL && find_token(requests[i]) != nullptr) return true;
  }
  return false;
}

bool must_serve() {
  return token_counts.started.load(std::memory_order_relaxed) > 0 && !waits_below_serve() &&
         core::inside.depth == 0;
}

void serve_until_complete(int count, const MPI_Request requests[]) {
  MixedWait context("a wait of the MPI below", nullptr);
  const Status status = core::wait_until(context.policy(), context, [&] {
    for (int i = 0; i < count && must_serve(); ++i) {
      int done = 1;
      if (requests[i] != MPI_REQUEST_NULL) {
        PMPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE);
      }
      if (done == 0) return Poll::pending;
    }
    return Poll::ready; // the rest is for the MPI below, which serves Ferry by itself
  });
  static_cast<void>(status); // without a time limit it is always fine
}

MixedRequests::MixedRequests(int count, MPI_Request requests[])
    : count_(count), requests_(requests) {
  tokens_.reserve(static_cast<std::size_t>(count));
  others_.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const bool null = requests[i] == MPI_REQUEST_NULL;
    tokens_.push_back(null ? nullptr : find_token(requests[i]));
    others_.push_back(tokens_.back() != nullptr ? MPI_REQUEST_NULL : requests[i]);
    any_other_ = any_other_ || others_.back() != MPI_REQUEST_NULL;
  }
}

MixedRequests::~MixedRequests() {
  for (int i = 0; i < count_; ++i) {
    if (token(i) == nullptr) requests_[i] = others_[static_cast<std::size_t>(i)];
  }
}

int MixedRequests::started() const {
  int found = 0;
  for (const Token* token : tokens_) found += token != nullptr && token->started() ? 1 : 0;
  return found;
}

int MixedRequests::ready() const {
  int found = 0;
  for (Token* token : tokens_) {
    if (token != nullptr && token->started() && look(*token) == Poll::ready) ++found;
  }
  return found;
}

void MixedRequests::poke() const {
  for (Token* token : tokens_) {
    if (token != nullptr && token->started()) interpose::poke(*token);
  }
}

Status MixedRequests::finish(int i) {
  return interpose::finish(*token(i), &requests_[i]);
}

Status MixedRequests::wait(int i) {
  return interpose::wait(*token(i), &requests_[i]);
}

core::WaitPolicy MixedWait::policy() const {
  core::WaitPolicy policy;
  // A message of the program may come as late as it likes.
  const bool bounded = requests_ != nullptr && !requests_->any_other();
  policy.warn_after = bounded ? core::config().warn_after : 0;
  policy.timeout = bounded ? core::config().timeout : 0;
  return policy;
}

void MixedWait::poke() {
  const core::Inside scope;
  core::serve_all();
  if (requests_ != nullptr) requests_->poke();
}

void MixedWait::sleep(double, bool (*)(void*), void*) {
  sched_yield();
}

Status MixedWait::check_peers() {
  return {}; // poke() looks, and ends the operations that a dead rank takes part in
}

std::string MixedWait::what() const {
  return fmt::format(
      "{}: none of {} collectives is complete", function_,
      requests_ != nullptr ? requests_->started() : 0);
}

} // namespace ferry::interpose
