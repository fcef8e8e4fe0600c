// SPDX-License-Identifier: MIT
#include <algorithm>

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

bool has_gaps(const Call& call, const Communicator& state) {
  CollectiveDesc desc;
  describe_call(call, state.rank(), state.ranks(), desc);
  return !desc.recv_plain() || (!desc.in_place && !desc.send_plain());
}

// Bytes of a block, alike on all ranks; 0 too where they are none that could be.
MPI_Count block_bytes(const Call& call, int rank) {
  const bool at_root = rank == call.root;
  const bool of_send = (call.operation == Operation::gather && !at_root) ||
                       (call.operation == Operation::scatter && at_root);
  const Side& side = of_send ? call.send : call.recv;
  MPI_Count size = 0;
  if (side.type != MPI_DATATYPE_NULL) PMPI_Type_size_x(side.type, &size);
  return std::max<MPI_Count>(side.count, 0) * size;
}

// A call that all ranks alike hand to the MPI below in its own form; some only if MPICH 4.0.2 does
// them right. It is wrong about blocks of no bytes but some elements, and crashes in a reduce in
// place, of which the root alone knows. Long messages of types with gaps it cuts in the wrong
// place: a matter of each rank, who packs them then, into a call of the same function.
Carrier carrier_below(const Call& call, const Communicator& state) {
  constexpr MPI_Count kWhole = 8000; // bytes that no message of it cuts
  if (call.operation == Operation::barrier || call.operation == Operation::allreduce ||
      call.operation == Operation::reduce_scatter) {
    return Carrier::below;
  }
  if (call.operation == Operation::reduce || call.send.arrays || call.recv.arrays) {
    return Carrier::ferry;
  }
  const MPI_Count bytes = block_bytes(call, state.rank());
  if (bytes == 0) return Carrier::ferry;
  if (bytes <= kWhole / state.ranks()) return Carrier::below;
  if (call.operation == Operation::gather || call.operation == Operation::scatter) {
    return Carrier::ferry;
  }
  return has_gaps(call, state) ? Carrier::below_packed : Carrier::below;
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

int run_packed(const Call& call) {
  return guarded({call.function, call.comm, call.quiet}, [&] {
    CollectiveDesc desc;
    describe(call, find_state(call.comm), desc);
    MpiPath path;
    path.run_packed(call.comm, desc);
    if (path.status().ok()) return MPI_SUCCESS;
    return report({call.function, call.comm, call.quiet}, path.status());
  });
}

Carrier carrier_of(const Call& call, const char** why) {
  const StateHolder* holder = find_state(call.comm);
  if (holder != nullptr && call.form == Form::blocking && (*holder)->passes_blocking()) {
    *why = "ranks share no memory";
    const Carrier below = carrier_below(call, **holder);
    if (below != Carrier::ferry) return below;
  }
  if (holder == nullptr) { // with one it is an intra-communicator
    int inter = 0;
    PMPI_Comm_test_inter(call.comm, &inter);
    *why = "inter-communicator";
    if (inter != 0) return Carrier::below;
  }
  if (!reduces(call.operation)) return Carrier::ferry;
  *why = why_not_reduced(call.reduction, call.recv.type);
  return *why == nullptr ? Carrier::ferry : Carrier::below;
}

} // namespace ferry::core
