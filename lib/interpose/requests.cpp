// SPDX-License-Identifier: MIT
// Functions of MPI that take one request, or start several.
#include "lib/interpose/handles.hpp"
#include "lib/interpose/mixed.hpp"
#include "lib/interpose/status.hpp"

namespace ferry::interpose {
namespace {

using core::ErrorKind;
using core::Poll;
using core::report;
using core::Status;

int outcome(const core::CallSite& site, const Status& status) {
  if (status.ok()) return MPI_SUCCESS;
  const core::Inside scope;
  return report(site, status);
}

Token* token_of(const MPI_Request* request) {
  return request != nullptr ? find_token(*request) : nullptr;
}

int refuse(const char* function, const Token& token, const char* cause, const char* remedy) {
  return outcome(site_of(function, token), {ErrorKind::request, cause, remedy});
}

int start_token(const char* function, Token& token) {
  if (!token.persistent()) {
    return refuse(
        function, token, "the request is not persistent", "only requests of *_init are started");
  }
  if (token.started()) {
    return refuse(
        function, token, "the request is active", "complete it with MPI_Wait or MPI_Test");
  }
  return outcome(site_of(function, token), start(token));
}

int start_one(decltype(&MPI_Start) next, const char* function, MPI_Request* request) {
  Token* token = token_of(request);
  return token != nullptr ? start_token(function, *token) : next(request);
}

int start_all(
    decltype(&MPI_Startall) next, const char* function, int count, MPI_Request requests[]) {
  if (!holds_token(count, requests)) return next(count, requests);
  for (int i = 0; i < count; ++i) {
    Token* token = find_token(requests[i]);
    const int code = token != nullptr ? start_token(function, *token) : next(1, requests + i);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int wait_one(
    decltype(&MPI_Wait) next, const char* function, MPI_Request* request, MPI_Status* status) {
  Token* token = token_of(request);
  if (token == nullptr) {
    if (request != nullptr && must_serve()) serve_until_complete(1, request);
    return next(request, status);
  }
  set_empty(status);
  if (!token->started()) return MPI_SUCCESS;
  const core::CallSite site = site_of(function, *token);
  return outcome(site, wait(*token, request));
}

int test_one(
    decltype(&MPI_Test) next, const char* function, MPI_Request* request, int* flag,
    MPI_Status* status) {
  Token* token = token_of(request);
  if (token == nullptr || flag == nullptr) return next(request, flag, status);
  *flag = look(*token) == Poll::ready ? 1 : 0;
  if (*flag == 0) {
    poke(*token);
    return MPI_SUCCESS;
  }
  set_empty(status);
  if (!token->started()) return MPI_SUCCESS;
  const core::CallSite site = site_of(function, *token);
  return outcome(site, finish(*token, request));
}

int free_one(decltype(&MPI_Request_free) next, const char* function, MPI_Request* request) {
  Token* token = token_of(request);
  if (token == nullptr) return next(request);
  if (!token->persistent()) {
    return refuse(
        function, *token, "a non-blocking collective cannot be freed",
        "complete it with MPI_Wait or MPI_Test");
  }
  free_token(*token, request);
  return MPI_SUCCESS;
}

int get_status(
    decltype(&MPI_Request_get_status) next, const char*, MPI_Request request, int* flag,
    MPI_Status* status) {
  Token* token = find_token(request);
  if (token == nullptr || flag == nullptr) return next(request, flag, status);
  *flag = look(*token) == Poll::ready ? 1 : 0;
  if (*flag != 0) {
    set_empty(status);
  } else {
    poke(*token);
  }
  return MPI_SUCCESS;
}

int cancel(decltype(&MPI_Cancel) next, const char* function, MPI_Request* request) {
  Token* token = token_of(request);
  if (token == nullptr) return next(request);
  return refuse(function, *token, "a collective cannot be cancelled", "complete it with MPI_Wait");
}

} // namespace
} // namespace ferry::interpose

using namespace ferry::interpose;

FERRY_HANDLES(MPI_Start, (MPI_Request * request), (request), start_one)
FERRY_HANDLES(MPI_Startall, (int count, MPI_Request requests[]), (count, requests), start_all)
FERRY_HANDLES(MPI_Wait, (MPI_Request * request, MPI_Status* status), (request, status), wait_one)
FERRY_HANDLES(
    MPI_Test, (MPI_Request * request, int* flag, MPI_Status* status), (request, flag, status),
    test_one)
FERRY_HANDLES(MPI_Request_free, (MPI_Request * request), (request), free_one)
FERRY_HANDLES(
    MPI_Request_get_status, (MPI_Request request, int* flag, MPI_Status* status),
    (request, flag, status), get_status)
FERRY_HANDLES(MPI_Cancel, (MPI_Request * request), (request), cancel)
