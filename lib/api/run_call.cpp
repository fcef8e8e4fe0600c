// SPDX-License-Identifier: MIT
#include "lib/api/call.hpp"
#include "lib/api/describe_call.hpp"
#include "lib/api/report.hpp"
#include "lib/api/request.hpp"
#include "lib/api/state.hpp"

namespace ferry::core {
namespace {

int run_blocking(const CallSite& site, Communicator& state, const CollectiveDesc& desc) {
  LaneOp op;
  op.desc = desc;
  state.post(op);
  const Status status = state.wait(op);
  return status.ok() ? MPI_SUCCESS : report(site, status);
}

std::unique_ptr<ferry_request_s> new_handle(const CallSite& site, const StateHolder& state) {
  auto handle = std::make_unique<ferry_request_s>();
  handle->state = state;
  handle->comm = site.comm;
  handle->quiet = site.quiet;
  return handle;
}

int run_nonblocking(
    const CallSite& site, const StateHolder& state, const CollectiveDesc& desc,
    ferry_request* request) {
  auto handle = new_handle(site, state);
  handle->started = true;
  handle->op.desc = desc;
  state->post(handle->op);
  *request = handle.release();
  return MPI_SUCCESS;
}

int init_persistent(
    const CallSite& site, const StateHolder& state, const CollectiveDesc& desc,
    ferry_request* request) {
  auto handle = new_handle(site, state);
  handle->plan = state->make_plan(desc);
  *request = handle.release();
  return MPI_SUCCESS;
}

} // namespace

int run_call(const Call& call, ferry_request* request) {
  if (request != nullptr) *request = FERRY_REQUEST_NULL;
  const CallSite site{call.function, call.comm, call.quiet};
  return guarded(site, [&] {
    if (request == nullptr && call.form != Form::blocking) {
      throw Failure(ErrorKind::argument, "request is NULL", "pass the address of a ferry_request");
    }
    StateHolder* holder = find_state(call.comm);
    int rank = 0;
    int ranks = 0;
    if (holder != nullptr) {
      rank = (*holder)->rank();
      ranks = (*holder)->ranks();
    } else {
      ranks = check_communicator(call.comm);
      PMPI_Comm_rank(call.comm, &rank);
    }
    const CollectiveDesc desc = describe_call(call, rank, ranks);
    const StateHolder& state = *(holder != nullptr ? holder : make_state(call.comm));
    switch (desc.form) {
      case Form::blocking:
        return run_blocking(site, *state, desc);
      case Form::nonblocking:
        return run_nonblocking(site, state, desc, request);
      case Form::persistent:
        return init_persistent(site, state, desc, request);
    }
    return MPI_ERR_INTERN;
  });
}

bool carries(const Call& call, const char** why) {
  if (find_state(call.comm) == nullptr) { // with one it is an intra-communicator
    int inter = 0;
    PMPI_Comm_test_inter(call.comm, &inter);
    *why = "inter-communicator";
    if (inter != 0) return false;
  }
  if (!reduces(call.operation)) return true;
  *why = why_not_reduced(call.reduction, call.recv.type);
  return *why == nullptr;
}

} // namespace ferry::core
