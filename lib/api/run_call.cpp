// SPDX-License-Identifier: MIT
#include "lib/api/call.hpp"
#include "lib/api/describe_call.hpp"
#include "lib/api/report.hpp"
#include "lib/api/request.hpp"
#include "lib/api/state.hpp"

namespace ferry::core {
namespace {

// The state of a call's communicator, made at the first call on it.
const StateHolder& state_of(const Call& call, StateHolder* holder) {
  return *(holder != nullptr ? holder : make_state(call.comm));
}

// The arguments are checked before the communicator gets a state.
void describe(const Call& call, const StateHolder* holder, CollectiveDesc& desc) {
  int rank = 0;
  int ranks = 0;
  if (holder != nullptr) {
    rank = (*holder)->rank();
    ranks = (*holder)->ranks();
  } else {
    ranks = check_communicator(call.comm);
    PMPI_Comm_rank(call.comm, &rank);
  }
  describe_call(call, rank, ranks, desc);
}

int run_blocking(const CallSite& site, const Call& call) {
  StateHolder* holder = find_state(call.comm);
  LaneOp op;
  describe(call, holder, op.desc);
  state_of(call, holder)->run(op);
  return op.status.ok() ? MPI_SUCCESS : report(site, op.status);
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

// MPI_Alltoallw of MPICH 4.0.2 refuses equal buffers of which nothing is sent.
bool passes(const Call& call, const Communicator& state) {
  return call.form == Form::blocking && state.passes_blocking() && call.recv.types == nullptr;
}

} // namespace

int run_call(const Call& call, ferry_request* request) {
  if (request != nullptr) *request = FERRY_REQUEST_NULL;
  const CallSite site{call.function, call.comm, call.quiet};
  return guarded(site, [&] {
    if (request == nullptr && call.form != Form::blocking) {
      throw Failure(ErrorKind::argument, "request is NULL", "pass the address of a ferry_request");
    }
    if (call.form == Form::blocking) return run_blocking(site, call);
    StateHolder* holder = find_state(call.comm);
    CollectiveDesc desc;
    describe(call, holder, desc);
    const StateHolder& state = state_of(call, holder);
    return call.form == Form::nonblocking ? run_nonblocking(site, state, desc, request)
                                          : init_persistent(site, state, desc, request);
  });
}

bool carries(const Call& call, const char** why) {
  if (const StateHolder* holder = find_state(call.comm); holder != nullptr) {
    *why = "ranks share no memory";
    if (passes(call, **holder)) return false;
  } else { // with one it is an intra-communicator
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
