// SPDX-License-Identifier: MIT
// Functions of MPI that complete several requests: tokens, the program's own, or both.
#include <utility>
#include <vector>

#include "lib/interpose/handles.hpp"
#include "lib/interpose/mixed.hpp"
#include "lib/interpose/status.hpp"

namespace ferry::interpose {
namespace {

using core::Poll;
using core::report;
using core::Status;

// Nothing here for Ferry: no array, no token in it, and no operation that must be served meanwhile.
bool not_ours(int count, const MPI_Request requests[]) {
  if (count <= 0 || requests == nullptr) return true;
  return !holds_token(count, requests) && !must_serve();
}

MPI_Status* status_at(MPI_Status statuses[], int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

// The operations of one call that ended with an error, by their place among the statuses.
class Failures {
 public:
  void note(int place, const core::CallSite& site, Status status) {
    if (!status.ok()) found_.push_back({place, site, std::move(status)});
  }
  // Fills in MPI_ERROR, and calls the error handler once; `code` is what the MPI below returned.
  int tell(int count, MPI_Status statuses[], int code) {
    if (found_.empty()) return code;
    const core::Inside scope;
    for (int i = 0; i < count && code == MPI_SUCCESS && statuses != MPI_STATUSES_IGNORE; ++i) {
      statuses[i].MPI_ERROR = MPI_SUCCESS;
    }
    bool told = code != MPI_SUCCESS;
    for (Failure& failure : found_) {
      failure.site.quiet = told;
      failure.site.in_status = true;
      const int error = report(failure.site, failure.status);
      if (statuses != MPI_STATUSES_IGNORE) statuses[failure.place].MPI_ERROR = error;
      told = true;
    }
    return MPI_ERR_IN_STATUS;
  }

 private:
  struct Failure {
    int place;
    core::CallSite site;
    Status status;
  };
  std::vector<Failure> found_;
};

int wait_all(
    decltype(&MPI_Waitall) next, const char* function, int count, MPI_Request requests[],
    MPI_Status statuses[]) {
  if (not_ours(count, requests)) return next(count, requests, statuses);
  MixedRequests mixed(count, requests);
  Failures failures;
  for (int i = 0; i < count; ++i) {
    Token* token = mixed.token(i);
    if (token == nullptr || !token->started()) continue;
    const core::CallSite site = site_of(function, *token);
    failures.note(i, site, mixed.wait(i));
  }
  if (mixed.any_other() && must_serve()) serve_until_complete(count, mixed.others());
  // Where a token stands the MPI below sees a null request, and writes an empty status.
  return failures.tell(count, statuses, next(count, mixed.others(), statuses));
}

int test_all(
    decltype(&MPI_Testall) next, const char* function, int count, MPI_Request requests[], int* flag,
    MPI_Status statuses[]) {
  if (not_ours(count, requests) || flag == nullptr) return next(count, requests, flag, statuses);
  MixedRequests mixed(count, requests);
  // All or nothing: as long as one is under way no request changes.
  *flag = 0;
  if (mixed.ready() < mixed.started()) {
    mixed.poke();
    return MPI_SUCCESS;
  }
  const int code = next(count, mixed.others(), flag, statuses);
  if (*flag == 0) return code;
  Failures failures;
  for (int i = 0; i < count; ++i) {
    Token* token = mixed.token(i);
    if (token == nullptr || !token->started()) continue;
    const core::CallSite site = site_of(function, *token);
    failures.note(i, site, mixed.finish(i));
  }
  return failures.tell(count, statuses, code);
}

// One look at all requests for the first that is complete.
class AnyLook {
 public:
  AnyLook(MixedRequests& mixed, MPI_Status* status) : mixed_(mixed), status_(status) {}
  Poll operator()() {
    if (over_) return Poll::ready;
    for (int i = 0; i < mixed_.count(); ++i) {
      Token* token = mixed_.token(i);
      if (token == nullptr || !token->started() || look(*token) == Poll::pending) continue;
      return end(i, token);
    }
    if (look_below()) return end(index_, nullptr);
    return none_active_ && mixed_.started() == 0 ? end(MPI_UNDEFINED, nullptr) : Poll::pending;
  }
  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] int index() const { return index_; }

  // Completes what was found.
  int tell(const char* function) {
    if (token_ == nullptr && index_ == MPI_UNDEFINED) set_empty(status_);
    if (token_ == nullptr) return code_;
    set_empty(status_);
    const core::CallSite site = site_of(function, *token_);
    const Status status = mixed_.finish(index_);
    const core::Inside scope;
    return status.ok() ? MPI_SUCCESS : report(site, status);
  }

 private:
  Poll end(int index, Token* token) {
    over_ = true;
    index_ = index;
    token_ = token;
    return Poll::ready;
  }
  bool look_below() {
    static const auto test_any = find_next<decltype(&MPI_Testany)>("MPI_Testany");
    none_active_ = !mixed_.any_other();
    if (none_active_) return false;
    int flag = 0;
    code_ = test_any(mixed_.count(), mixed_.others(), &index_, &flag, status_);
    if (code_ != MPI_SUCCESS) return true;
    none_active_ = flag != 0 && index_ == MPI_UNDEFINED;
    return flag != 0 && index_ != MPI_UNDEFINED;
  }

  MixedRequests& mixed_;
  MPI_Status* status_;
  bool over_ = false;
  bool none_active_ = false;
  int index_ = MPI_UNDEFINED;
  Token* token_ = nullptr;
  int code_ = MPI_SUCCESS;
};

int report_wait(const char* function, const Status& status) {
  const core::Inside scope;
  return report({function}, status);
}

int wait_any(
    decltype(&MPI_Waitany) next, const char* function, int count, MPI_Request requests[],
    int* index, MPI_Status* status) {
  if (not_ours(count, requests) || index == nullptr) return next(count, requests, index, status);
  MixedRequests mixed(count, requests);
  AnyLook any(mixed, status);
  MixedWait context(function, &mixed);
  const Status waited = core::wait_until(context.policy(), context, any);
  *index = any.index();
  return waited.ok() ? any.tell(function) : report_wait(function, waited);
}

int test_any(
    decltype(&MPI_Testany) next, const char* function, int count, MPI_Request requests[],
    int* index, int* flag, MPI_Status* status) {
  if (not_ours(count, requests) || index == nullptr || flag == nullptr) {
    return next(count, requests, index, flag, status);
  }
  MixedRequests mixed(count, requests);
  AnyLook any(mixed, status);
  *flag = any() == Poll::ready ? 1 : 0;
  *index = *flag != 0 ? any.index() : MPI_UNDEFINED;
  if (*flag != 0) return any.tell(function);
  mixed.poke();
  return MPI_SUCCESS;
}

// One look at all requests that completes as many as it can.
class SomeLook {
 public:
  SomeLook(const char* function, MixedRequests& mixed, int indices[], MPI_Status statuses[])
      : function_(function), mixed_(mixed), indices_(indices), statuses_(statuses) {}
  Poll operator()() {
    if (over_) return Poll::ready;
    const bool active = mixed_.started() > 0;
    for (int i = 0; i < mixed_.count(); ++i) {
      Token* token = mixed_.token(i);
      if (token == nullptr || !token->started() || look(*token) == Poll::pending) continue;
      const core::CallSite site = site_of(function_, *token);
      set_empty(status_at(statuses_, found_));
      failures_.note(found_, site, mixed_.finish(i));
      indices_[found_++] = i;
    }
    const bool active_below = look_below();
    over_ = found_ > 0 || (!active && !active_below);
    return over_ ? Poll::ready : Poll::pending;
  }
  [[nodiscard]] int found() const { return over_ && found_ == 0 ? MPI_UNDEFINED : found_; }
  int tell() { return failures_.tell(found_, statuses_, code_); }

 private:
  // True when the MPI below knows of active requests.
  bool look_below() {
    static const auto test_some = find_next<decltype(&MPI_Testsome)>("MPI_Testsome");
    if (!mixed_.any_other()) return false;
    int more = 0;
    code_ = test_some(
        mixed_.count(), mixed_.others(), &more, indices_ + found_, status_at(statuses_, found_));
    if (more == MPI_UNDEFINED) return false;
    found_ += more;
    return true;
  }

  const char* function_;
  MixedRequests& mixed_;
  int* indices_;
  MPI_Status* statuses_;
  Failures failures_;
  bool over_ = false;
  int found_ = 0;
  int code_ = MPI_SUCCESS;
};

int wait_some(
    decltype(&MPI_Waitsome) next, const char* function, int count, MPI_Request requests[],
    int* found, int indices[], MPI_Status statuses[]) {
  if (not_ours(count, requests) || found == nullptr || indices == nullptr) {
    return next(count, requests, found, indices, statuses);
  }
  MixedRequests mixed(count, requests);
  SomeLook some(function, mixed, indices, statuses);
  MixedWait context(function, &mixed);
  const Status waited = core::wait_until(context.policy(), context, some);
  *found = some.found();
  return waited.ok() ? some.tell() : report_wait(function, waited);
}

int test_some(
    decltype(&MPI_Testsome) next, const char* function, int count, MPI_Request requests[],
    int* found, int indices[], MPI_Status statuses[]) {
  if (not_ours(count, requests) || found == nullptr || indices == nullptr) {
    return next(count, requests, found, indices, statuses);
  }
  MixedRequests mixed(count, requests);
  SomeLook some(function, mixed, indices, statuses);
  if (some() == Poll::pending) mixed.poke();
  *found = some.found();
  return some.tell();
}

} // namespace
} // namespace ferry::interpose

using namespace ferry::interpose;

FERRY_HANDLES(
    MPI_Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]),
    (count, requests, statuses), wait_all)
FERRY_HANDLES(
    MPI_Testall, (int count, MPI_Request requests[], int* flag, MPI_Status statuses[]),
    (count, requests, flag, statuses), test_all)
FERRY_HANDLES(
    MPI_Waitany, (int count, MPI_Request requests[], int* index, MPI_Status* status),
    (count, requests, index, status), wait_any)
FERRY_HANDLES(
    MPI_Testany, (int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status),
    (count, requests, index, flag, status), test_any)
FERRY_HANDLES(
    MPI_Waitsome,
    (int count, MPI_Request requests[], int* found, int indices[], MPI_Status statuses[]),
    (count, requests, found, indices, statuses), wait_some)
FERRY_HANDLES(
    MPI_Testsome,
    (int count, MPI_Request requests[], int* found, int indices[], MPI_Status statuses[]),
    (count, requests, found, indices, statuses), test_some)
