// SPDX-License-Identifier: MIT
#include "calls.hpp"

namespace ferry::test {
namespace {

constexpr const char* kNames[] = {
    "alltoall",
    "alltoallv",
    "alltoallw",
    "allgather",
    "allgatherv",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "barrier",
    "reduce_scatter",
    "reduce_scatter_block",
    "allreduce",
    "reduce"};
static_assert(std::size(kNames) == kColls);

// What the names with and without _c take.
struct Small {
  static constexpr bool kLarge = false;
  static const int* counts(const Vectors& v) { return v.int_counts.data(); }
  static const int* displs(const Vectors& v) { return v.int_displs.data(); }
};

struct Large {
  static constexpr bool kLarge = true;
  static const MPI_Count* counts(const Vectors& v) { return v.counts.data(); }
  static const MPI_Aint* displs(const Vectors& v) { return v.displs.data(); }
};

// One collective in its six forms; the arguments before the communicator are the same.
#define FERRY_TEST_FORMS(Name, name, ...)                                              \
  if constexpr (Width::kLarge) {                                                       \
    if (way == Way::blocking) return MPI_##Name##_c(__VA_ARGS__, c.comm);              \
    if (way == Way::nonblocking) return MPI_I##name##_c(__VA_ARGS__, c.comm, request); \
    return MPI_##Name##_init_c(__VA_ARGS__, c.comm, MPI_INFO_NULL, request);           \
  } else {                                                                             \
    if (way == Way::blocking) return MPI_##Name(__VA_ARGS__, c.comm);                  \
    if (way == Way::nonblocking) return MPI_I##name(__VA_ARGS__, c.comm, request);     \
    return MPI_##Name##_init(__VA_ARGS__, c.comm, MPI_INFO_NULL, request);             \
  }

template <class Width>
struct Caller {
  const Call& c;
  MPI_Request* request;
  Way way = c.form.way;
  decltype(Width::counts(c.sent)) scounts = Width::counts(c.sent);
  decltype(Width::counts(c.sent)) rcounts = Width::counts(c.received);
  decltype(Width::displs(c.sent)) sdispls = Width::displs(c.sent);
  decltype(Width::displs(c.sent)) rdispls = Width::displs(c.received);
  const MPI_Datatype* stypes = c.sent.types.data();
  const MPI_Datatype* rtypes = c.received.types.data();

  int alltoall() {
    FERRY_TEST_FORMS(Alltoall, alltoall, c.send, *scounts, *stypes, c.recv, *rcounts, *rtypes)
  }
  int alltoallv() {
    FERRY_TEST_FORMS(
        Alltoallv, alltoallv, c.send, scounts, sdispls, *stypes, c.recv, rcounts, rdispls, *rtypes)
  }
  int alltoallw() {
    FERRY_TEST_FORMS(
        Alltoallw, alltoallw, c.send, scounts, sdispls, stypes, c.recv, rcounts, rdispls, rtypes)
  }
  int allgather() {
    FERRY_TEST_FORMS(Allgather, allgather, c.send, *scounts, *stypes, c.recv, *rcounts, *rtypes)
  }
  int allgatherv() {
    FERRY_TEST_FORMS(
        Allgatherv, allgatherv, c.send, *scounts, *stypes, c.recv, rcounts, rdispls, *rtypes)
  }
  int bcast() { FERRY_TEST_FORMS(Bcast, bcast, c.recv, *rcounts, *rtypes, c.root) }
  int gather() {
    FERRY_TEST_FORMS(Gather, gather, c.send, *scounts, *stypes, c.recv, *rcounts, *rtypes, c.root)
  }
  int gatherv() {
    FERRY_TEST_FORMS(
        Gatherv, gatherv, c.send, *scounts, *stypes, c.recv, rcounts, rdispls, *rtypes, c.root)
  }
  int scatter() {
    FERRY_TEST_FORMS(Scatter, scatter, c.send, *scounts, *stypes, c.recv, *rcounts, *rtypes, c.root)
  }
  int scatterv() {
    FERRY_TEST_FORMS(
        Scatterv, scatterv, c.send, scounts, sdispls, *stypes, c.recv, *rcounts, *rtypes, c.root)
  }
  int reduce_scatter() {
    FERRY_TEST_FORMS(Reduce_scatter, reduce_scatter, c.send, c.recv, rcounts, *rtypes, c.op)
  }
  int reduce_scatter_block() {
    FERRY_TEST_FORMS(
        Reduce_scatter_block, reduce_scatter_block, c.send, c.recv, *rcounts, *rtypes, c.op)
  }
  int allreduce() {
    FERRY_TEST_FORMS(Allreduce, allreduce, c.send, c.recv, *rcounts, *rtypes, c.op)
  }
  int reduce() { FERRY_TEST_FORMS(Reduce, reduce, c.send, c.recv, *rcounts, *rtypes, c.op, c.root) }
  int barrier() {
    if (way == Way::blocking) return MPI_Barrier(c.comm);
    if (way == Way::nonblocking) return MPI_Ibarrier(c.comm, request);
    return MPI_Barrier_init(c.comm, MPI_INFO_NULL, request);
  }
};

template <class Width>
int call_by_name(const Call& call, MPI_Request* request) {
  using C = Caller<Width>;
  constexpr int (C::*kCallers[])() = {
      &C::alltoall,
      &C::alltoallv,
      &C::alltoallw,
      &C::allgather,
      &C::allgatherv,
      &C::bcast,
      &C::gather,
      &C::gatherv,
      &C::scatter,
      &C::scatterv,
      &C::barrier,
      &C::reduce_scatter,
      &C::reduce_scatter_block,
      &C::allreduce,
      &C::reduce};
  static_assert(std::size(kCallers) == kColls);
  C caller{call, request};
  return (caller.*kCallers[static_cast<int>(call.form.coll)])();
}

} // namespace

bool has_in_place(Coll coll) {
  return coll != Coll::bcast && coll != Coll::barrier;
}

bool has_large(Coll coll) {
  return coll != Coll::barrier;
}

bool has_root(Coll coll) {
  return coll == Coll::bcast || coll == Coll::gather || coll == Coll::gatherv ||
         coll == Coll::scatter || coll == Coll::scatterv || coll == Coll::reduce;
}

bool reduces(Coll coll) {
  return coll == Coll::reduce_scatter || coll == Coll::reduce_scatter_block ||
         coll == Coll::allreduce || coll == Coll::reduce;
}

std::string name_of(const Form& form) {
  std::string name = form.way == Way::nonblocking ? "i" : "";
  name += kNames[static_cast<int>(form.coll)];
  if (form.way == Way::persistent) name += "_init";
  if (form.large) name += "_c";
  return name + (form.in_place ? " in place" : "");
}

void Vectors::set() {
  int_counts.assign(counts.size(), 0);
  int_displs.assign(displs.size(), 0);
  for (std::size_t i = 0; i < counts.size(); ++i) int_counts[i] = static_cast<int>(counts[i]);
  for (std::size_t i = 0; i < displs.size(); ++i) int_displs[i] = static_cast<int>(displs[i]);
}

int make_call(const Call& call, MPI_Request* request) {
  return call.form.large ? call_by_name<Large>(call, request) : call_by_name<Small>(call, request);
}

} // namespace ferry::test
