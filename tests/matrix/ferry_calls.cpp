// SPDX-License-Identifier: MIT
#include "ferry_calls.hpp"

// Buffers that ask MPI for memory get what peers can map; tests may have better for them.
extern "C" [[gnu::weak]] int MPI_Alloc_mem(MPI_Aint size, MPI_Info, void* base) {
  return ferry_alloc(size, base);
}
extern "C" [[gnu::weak]] int MPI_Free_mem(void* base) {
  return ferry_free(base);
}

namespace ferry::test {
namespace {

// One collective in its three forms; the arguments before the communicator are the same.
#define FERRY_TEST_FORMS(name, ...)                                                \
  if (way == Way::blocking) return ferry_##name(__VA_ARGS__, c.comm);              \
  if (way == Way::nonblocking) return ferry_i##name(__VA_ARGS__, c.comm, request); \
  return ferry_##name##_init(__VA_ARGS__, c.comm, MPI_INFO_NULL, request);

int move_blocks(const Call& c, ferry_request* request) {
  const Way way = c.form.way;
  const auto& [sn, sd, st, i0, i1] = c.sent;
  const auto& [rn, rd, rt, i2, i3] = c.received;
  switch (c.form.coll) {
    case Coll::alltoall:
      FERRY_TEST_FORMS(alltoall, c.send, sn[0], st[0], c.recv, rn[0], rt[0])
    case Coll::alltoallv:
      FERRY_TEST_FORMS(
          alltoallv, c.send, sn.data(), sd.data(), st[0], c.recv, rn.data(), rd.data(), rt[0])
    case Coll::alltoallw:
      FERRY_TEST_FORMS(
          alltoallw, c.send, sn.data(), sd.data(), st.data(), c.recv, rn.data(), rd.data(),
          rt.data())
    case Coll::allgather:
      FERRY_TEST_FORMS(allgather, c.send, sn[0], st[0], c.recv, rn[0], rt[0])
    case Coll::allgatherv:
      FERRY_TEST_FORMS(allgatherv, c.send, sn[0], st[0], c.recv, rn.data(), rd.data(), rt[0])
    case Coll::bcast:
      FERRY_TEST_FORMS(bcast, c.recv, rn[0], rt[0], c.root)
    case Coll::gather:
      FERRY_TEST_FORMS(gather, c.send, sn[0], st[0], c.recv, rn[0], rt[0], c.root)
    case Coll::gatherv:
      FERRY_TEST_FORMS(gatherv, c.send, sn[0], st[0], c.recv, rn.data(), rd.data(), rt[0], c.root)
    case Coll::scatter:
      FERRY_TEST_FORMS(scatter, c.send, sn[0], st[0], c.recv, rn[0], rt[0], c.root)
    case Coll::scatterv:
      FERRY_TEST_FORMS(scatterv, c.send, sn.data(), sd.data(), st[0], c.recv, rn[0], rt[0], c.root)
    default:
      return MPI_ERR_ARG;
  }
}

int reduce_blocks(const Call& c, ferry_request* request) {
  const Way way = c.form.way;
  const auto& counts = c.received.counts;
  const MPI_Datatype type = c.received.types[0];
  switch (c.form.coll) {
    case Coll::reduce_scatter:
      FERRY_TEST_FORMS(reduce_scatter, c.send, c.recv, counts.data(), type, c.op)
    case Coll::reduce_scatter_block:
      FERRY_TEST_FORMS(reduce_scatter_block, c.send, c.recv, counts[0], type, c.op)
    case Coll::allreduce:
      FERRY_TEST_FORMS(allreduce, c.send, c.recv, counts[0], type, c.op)
    case Coll::reduce:
      FERRY_TEST_FORMS(reduce, c.send, c.recv, counts[0], type, c.op, c.root)
    default:
      return MPI_ERR_ARG;
  }
}

} // namespace

int make_ferry_call(const Call& c, ferry_request* request) {
  const Way way = c.form.way;
  if (c.form.coll != Coll::barrier) {
    return reduces(c.form.coll) ? reduce_blocks(c, request) : move_blocks(c, request);
  }
  if (way == Way::blocking) return ferry_barrier(c.comm);
  if (way == Way::nonblocking) return ferry_ibarrier(c.comm, request);
  return ferry_barrier_init(c.comm, MPI_INFO_NULL, request);
}

} // namespace ferry::test
