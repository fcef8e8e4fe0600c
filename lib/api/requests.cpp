// SPDX-License-Identifier: MIT
// Handles of ferry.h: start, test, wait, free.
#include <fmt/format.h>

#include "include/ferry/ferry.h"
#include "lib/api/report.hpp"
#include "lib/api/request.hpp"

namespace ferry::core {
namespace {

CallSite site_of(const char* function, const ferry_request_s& handle) {
  // A communicator that was freed meanwhile has no error handler any more.
  return {function, handle.state->detached() ? MPI_COMM_NULL : handle.comm, handle.quiet};
}

int bad_request(
    const char* function, ferry_request* request, std::string cause, std::string remedy) {
  const CallSite site =
      request != nullptr && *request != nullptr ? site_of(function, **request) : CallSite{function};
  return report(site, {ErrorKind::request, std::move(cause), std::move(remedy)});
}

// Tell the user that the operation is over: a non-blocking handle goes, a persistent one rests.
int finish(const char* function, ferry_request* request, const Status& status) {
  ferry_request_s* handle = *request;
  if (status.ok() && handle->persistent()) return MPI_SUCCESS;
  const CallSite site = site_of(function, *handle);
  if (!handle->persistent()) {
    delete handle;
    *request = FERRY_REQUEST_NULL;
  }
  return status.ok() ? MPI_SUCCESS : report(site, status);
}

int start(ferry_request* request) {
  constexpr const char* kFunction = "ferry_start";
  if (request == nullptr || *request == FERRY_REQUEST_NULL) {
    return bad_request(kFunction, request, "the handle is null", "pass a handle of a *_init call");
  }
  ferry_request_s& handle = **request;
  if (!handle.persistent()) {
    return bad_request(
        kFunction, request, "the handle is not persistent", "only handles of *_init are started");
  }
  if (handle.started) {
    return bad_request(
        kFunction, request, "the handle is active", "complete it with ferry_wait or ferry_test");
  }
  const Status status = start_request(handle);
  return status.ok() ? MPI_SUCCESS : report(site_of(kFunction, handle), status);
}

int test(const char* function, ferry_request* request, int* flag) {
  *flag = 1;
  if (*request == FERRY_REQUEST_NULL || !(*request)->started) return MPI_SUCCESS;
  ferry_request_s& handle = **request;
  if (look_request(handle) == Poll::pending) {
    *flag = 0;
    handle.state->poke();
    return MPI_SUCCESS;
  }
  return finish(function, request, end_request(handle));
}

int wait(const char* function, ferry_request* request) {
  if (*request == FERRY_REQUEST_NULL || !(*request)->started) return MPI_SUCCESS;
  return finish(function, request, wait_request(**request));
}

bool null_array(int count, const void* requests) {
  return count < 0 || (count > 0 && !requests);
}

} // namespace

Status start_request(ferry_request_s& request) {
  Status status = request.state->start(*request.plan);
  if (status.ok()) request.started = true;
  return status;
}

Poll look_request(ferry_request_s& request) {
  return request.persistent() ? request.state->look(*request.plan)
                              : request.state->look(request.op);
}

Status wait_request(ferry_request_s& request) {
  Status status =
      request.persistent() ? request.state->wait(*request.plan) : request.state->wait(request.op);
  request.started = false;
  return status;
}

Status end_request(ferry_request_s& request) {
  request.started = false;
  return request.persistent() ? request.plan->status() : request.op.status;
}

} // namespace ferry::core

using namespace ferry::core;

extern "C" {

int ferry_start(ferry_request* request) {
  return guarded({"ferry_start"}, [&] { return start(request); });
}

int ferry_start_on_stream(ferry_request request, void* stream) {
  return guarded({"ferry_start_on_stream"}, [&] {
    constexpr const char* kFunction = "ferry_start_on_stream";
    if (request == FERRY_REQUEST_NULL || !request->persistent()) {
      return bad_request(
          kFunction, &request, "the handle is not persistent",
          "only handles of *_init are started");
    }
    const Status status = request->state->start_on_stream(*request->plan, stream);
    return status.ok() ? MPI_SUCCESS : report(site_of(kFunction, *request), status);
  });
}

int ferry_startall(int count, ferry_request requests[]) {
  return guarded({"ferry_startall"}, [&] {
    if (null_array(count, requests)) {
      return bad_request("ferry_startall", nullptr, "no array of handles", "pass count handles");
    }
    for (int i = 0; i < count; ++i) {
      if (const int code = start(&requests[i]); code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
  });
}

int ferry_test(ferry_request* request, int* flag) {
  return guarded({"ferry_test"}, [&] {
    if (request == nullptr || flag == nullptr) {
      return bad_request("ferry_test", nullptr, "request or flag is NULL", "pass their addresses");
    }
    return test("ferry_test", request, flag);
  });
}

int ferry_wait(ferry_request* request) {
  return guarded({"ferry_wait"}, [&] {
    if (request == nullptr) {
      return bad_request("ferry_wait", nullptr, "request is NULL", "pass its address");
    }
    return wait("ferry_wait", request);
  });
}

int ferry_testall(int count, ferry_request requests[], int* flag) {
  return guarded({"ferry_testall"}, [&] {
    if (null_array(count, requests) || flag == nullptr) {
      return bad_request("ferry_testall", nullptr, "no array of handles or flag", "pass both");
    }
    // All or nothing: as long as one is under way no handle changes.
    *flag = 1;
    for (int i = 0; i < count; ++i) {
      ferry_request_s* handle = requests[i];
      if (handle == nullptr || !handle->started || look_request(*handle) == Poll::ready) continue;
      handle->state->poke();
      *flag = 0;
    }
    int result = MPI_SUCCESS;
    for (int i = 0; i < count && *flag != 0; ++i) {
      int done = 0;
      const int code = test("ferry_testall", &requests[i], &done);
      if (result == MPI_SUCCESS) result = code;
    }
    return result;
  });
}

int ferry_waitall(int count, ferry_request requests[]) {
  return guarded({"ferry_waitall"}, [&] {
    if (null_array(count, requests)) {
      return bad_request("ferry_waitall", nullptr, "no array of handles", "pass count handles");
    }
    int result = MPI_SUCCESS;
    for (int i = 0; i < count; ++i) {
      const int code = wait("ferry_waitall", &requests[i]);
      if (result == MPI_SUCCESS) result = code;
    }
    return result;
  });
}

int ferry_request_free(ferry_request* request) {
  return guarded({"ferry_request_free"}, [&] {
    constexpr const char* kFunction = "ferry_request_free";
    if (request == nullptr || *request == FERRY_REQUEST_NULL) {
      return bad_request(kFunction, request, "the handle is null", "pass a persistent handle");
    }
    if ((*request)->started) {
      return bad_request(
          kFunction, request, "the handle is active", "complete it with ferry_wait or ferry_test");
    }
    delete *request;
    *request = FERRY_REQUEST_NULL;
    return MPI_SUCCESS;
  });
}

} // extern "C"
