// SPDX-License-Identifier: MIT
// The three regular collectives on today's entry points.
#include "lib/api/call.hpp"
#include "lib/api/describe_call.hpp"
#include "lib/api/state.hpp"

namespace ferry::core {

bool carries(const Call& call, const char** why) {
  if (find_state(call.comm) == nullptr) {
    int inter = 0;
    PMPI_Comm_test_inter(call.comm, &inter);
    *why = "inter-communicator";
    if (inter != 0) return false;
  }
  *why = "this collective is not carried";
  if (call.operation > Operation::broadcast) return false;
  if (call.send.counts.given() || call.recv.counts.given()) return false;
  try {
    static_cast<void>(layout_of(call.comm, call.recv.count, call.recv.type, "recvbuf"));
    if (call.operation != Operation::broadcast && call.send.buffer != MPI_IN_PLACE) {
      static_cast<void>(layout_of(call.comm, call.send.count, call.send.type, "sendbuf"));
    }
  } catch (const Failure&) {
    *why = "a type with gaps";
    return false;
  }
  return true;
}

int run_call(const Call& call, ferry_request* request) {
  const ferry_call old{
      sizeof(ferry_call),
      static_cast<ferry_operation>(static_cast<int>(call.operation) + 1),
      static_cast<ferry_form>(static_cast<int>(call.form) + 1),
      0,
      call.root,
      call.send.buffer,
      call.send.count,
      call.send.type,
      const_cast<void*>(call.recv.buffer),
      call.recv.count,
      call.recv.type,
      call.comm};
  return ferry_collective(&old, request);
}

} // namespace ferry::core
