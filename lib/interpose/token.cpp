// SPDX-License-Identifier: MIT
#include "lib/interpose/token.hpp"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/interpose/next.hpp"
#include "lib/interpose/progress.hpp"
#include "lib/interpose/status.hpp"

namespace ferry::interpose {

TokenCounts token_counts;

namespace {

using core::Poll;
using core::Status;

// Which requests are tokens. The lock is taken only where several threads may call at once.
class Table {
 public:
  Token* find(MPI_Request request) {
    if (!threaded_.load(std::memory_order_relaxed)) return look_up(request);
    const std::shared_lock lock(mutex_);
    return look_up(request);
  }
  void insert(std::unique_ptr<Token> token) {
    threaded_.store(many_threads(), std::memory_order_relaxed);
    const std::unique_lock lock(mutex_);
    const MPI_Request request = token->request;
    tokens_[request] = std::move(token);
    token_counts.alive.fetch_add(1, std::memory_order_relaxed);
  }
  std::unique_ptr<Token> remove(MPI_Request request) {
    const std::unique_lock lock(mutex_);
    const auto found = tokens_.find(request);
    auto token = std::move(found->second);
    tokens_.erase(found);
    token_counts.alive.fetch_sub(1, std::memory_order_relaxed);
    return token;
  }
  // Operations that were freed while they were started, or that got no request.
  void add_orphan(std::unique_ptr<ferry_request_s> operation) {
    const std::unique_lock lock(mutex_);
    orphans_.push_back(std::move(operation));
  }
  void reap_orphans() {
    std::vector<std::unique_ptr<ferry_request_s>> ended; // destroyed without the lock
    const std::unique_lock lock(mutex_);
    for (auto& orphan : orphans_) {
      if (core::look_request(*orphan) == Poll::ready) ended.push_back(std::move(orphan));
    }
    std::erase(orphans_, nullptr);
    token_counts.started.fetch_sub(static_cast<int>(ended.size()), std::memory_order_relaxed);
  }

 private:
  Token* look_up(MPI_Request request) {
    const auto found = tokens_.find(request);
    return found != tokens_.end() ? found->second.get() : nullptr;
  }
  std::shared_mutex mutex_;
  std::atomic<bool> threaded_{true};
  std::unordered_map<MPI_Request, std::unique_ptr<Token>> tokens_;
  std::vector<std::unique_ptr<ferry_request_s>> orphans_;
};

Table& table() {
  static auto* const table = new Table; // used until the process ends
  return *table;
}

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  throw core::Failure(
      core::ErrorKind::other, std::string(what) + " of the MPI below failed",
      "look at the error of the MPI below");
}

int query(void*, MPI_Status* status) {
  set_empty(status);
  return MPI_SUCCESS;
}

int release(void* state) {
  const core::Inside scope;
  static_cast<void>(table().remove(static_cast<Token*>(state)->request));
  return MPI_SUCCESS;
}

int refuse_cancel(void*, int) {
  return MPI_ERR_REQUEST;
}

// Who completes a request without passing through this library still finds its end.
int poll(void* state, MPI_Status*) {
  auto* token = static_cast<Token*>(state);
  const core::Inside scope;
  if (!token->started() || core::look_request(*token->operation) == Poll::pending)
    return MPI_SUCCESS;
  token_counts.started.fetch_sub(1, std::memory_order_relaxed);
  const Status status = core::end_request(*token->operation);
  PMPI_Grequest_complete(token->request);
  return status.ok() ? MPI_SUCCESS : core::report(site_of("MPI_Wait", *token), status);
}

int wait_for_all(int count, void** states, double, MPI_Status*) {
  int result = MPI_SUCCESS;
  for (int i = 0; i < count; ++i) {
    auto* token = static_cast<Token*>(states[i]);
    const core::Inside scope;
    if (token->started()) {
      const Status ended = core::wait_request(*token->operation);
      token_counts.started.fetch_sub(1, std::memory_order_relaxed);
      PMPI_Grequest_complete(token->request);
      if (!ended.ok()) result = core::report(site_of("MPI_Wait", *token), ended);
    }
  }
  return result;
}

// Tells the MPI below that a non-blocking token is complete, which frees it.
void end_generalised(MPI_Request* request) {
  static const auto wait_below = find_next<decltype(&MPI_Wait)>("MPI_Wait");
  PMPI_Grequest_complete(*request);
  wait_below(request, MPI_STATUS_IGNORE);
}

// Handles of freed persistent collectives, for the next ones. They are not given back: in
// MPICH 4.0.2 a persistent collective of its own hangs or crashes when it gets the place of a
// persistent message that was freed. They belong to MPI_COMM_SELF, which sessions alone do not
// have.
class HandlePool {
 public:
  MPI_Request take(MPI_Comm comm) {
    {
      const std::lock_guard lock(mutex_);
      if (!handles_.empty()) {
        const MPI_Request handle = handles_.back();
        handles_.pop_back();
        return handle;
      }
    }
    int up = 0;
    PMPI_Initialized(&up);
    MPI_Request handle = MPI_REQUEST_NULL;
    const MPI_Comm owner = up != 0 ? MPI_COMM_SELF : comm;
    check(PMPI_Send_init(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, owner, &handle), "MPI_Send_init");
    return handle;
  }
  void keep(MPI_Request handle) {
    const std::lock_guard lock(mutex_);
    handles_.push_back(handle);
  }

 private:
  std::mutex mutex_;
  std::vector<MPI_Request> handles_;
};

// Never destroyed: handles may come back while the process ends.
HandlePool& handle_pool() {
  static HandlePool& pool = *new HandlePool;
  return pool;
}

// `end` completes the operation; the token rests, or goes with a request that is not persistent.
Status complete(Token& token, MPI_Request* request, Status (*end)(ferry_request_s&)) {
  const core::Inside scope;
  Status status = end(*token.operation);
  token_counts.started.fetch_sub(1, std::memory_order_relaxed);
  if (!token.persistent()) end_generalised(request);
  return status;
}

} // namespace

Token* find_token(MPI_Request request) {
  return table().find(request);
}

MPI_Request make_token(ferry_request operation, const core::Call& call) {
  auto token = std::make_unique<Token>();
  token->operation.reset(operation);
  table().reap_orphans();
  MPI_Request request = MPI_REQUEST_NULL;
  if (call.form == core::Form::persistent) {
    request = handle_pool().take(call.comm);
  } else {
    token_counts.started.fetch_add(1, std::memory_order_relaxed);
    note_start();
    const int code = PMPIX_Grequest_start(
        query, release, refuse_cancel, poll, wait_for_all, token.get(), &request);
    // The operation is under way, with peers in it: it ends out of sight.
    if (code != MPI_SUCCESS) table().add_orphan(std::move(token->operation));
    check(code, "MPIX_Grequest_start");
  }
  token->request = request;
  table().insert(std::move(token));
  return request;
}

Poll look(Token& token) {
  if (!token.started()) return Poll::ready;
  const core::Inside scope;
  return core::look_request(*token.operation);
}

void poke(Token& token) {
  const core::Inside scope;
  token.operation->state->poke();
}

Status start(Token& token) {
  const core::Inside scope;
  Status status = core::start_request(*token.operation);
  if (!status.ok()) return status;
  token_counts.started.fetch_add(1, std::memory_order_relaxed);
  note_start();
  if (token.tally != nullptr) token.tally->started(token.path);
  return status;
}

Status finish(Token& token, MPI_Request* request) {
  return complete(token, request, core::end_request);
}

Status wait(Token& token, MPI_Request* request) {
  return complete(token, request, core::wait_request);
}

void free_token(Token& token, MPI_Request* request) {
  const core::Inside scope;
  const bool started = token.started();
  auto removed = table().remove(*request); // first: the MPI below may give the handle out again
  if (started) table().add_orphan(std::move(removed->operation));
  removed.reset();
  table().reap_orphans();
  handle_pool().keep(std::exchange(*request, MPI_REQUEST_NULL));
}

core::CallSite site_of(const char* function, const Token& token) {
  // A communicator that was freed meanwhile has no error handler any more.
  const bool gone = token.operation->state->detached();
  return {function, gone ? MPI_COMM_NULL : token.operation->comm};
}

} // namespace ferry::interpose
