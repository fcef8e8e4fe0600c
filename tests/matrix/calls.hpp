// SPDX-License-Identifier: MIT
// Every collective of MPI 4.0 on an intra-communicator, by plain names and in every form, behind
// one function.
#pragma once

#include <string>
#include <vector>

#include <mpi.h>

namespace ferry::test {

enum class Coll {
  alltoall,
  alltoallv,
  alltoallw,
  allgather,
  allgatherv,
  bcast,
  gather,
  gatherv,
  scatter,
  scatterv,
  barrier,
  reduce_scatter,
  reduce_scatter_block,
  allreduce,
  reduce,
};
inline constexpr int kColls = 15;

enum class Way { blocking, nonblocking, persistent };
inline constexpr int kWays = 3;

// How a call is made.
struct Form {
  Coll coll = Coll::barrier;
  Way way = Way::blocking;
  bool large = false; // the name that ends in _c
  bool in_place = false;
};

[[nodiscard]] bool has_in_place(Coll coll);
[[nodiscard]] bool has_large(Coll coll);
[[nodiscard]] bool has_root(Coll coll);
[[nodiscard]] bool reduces(Coll coll);
[[nodiscard]] std::string name_of(const Form& form);

// Counts, displacements and types of one side; a call without vectors takes the first.
struct Vectors {
  std::vector<MPI_Count> counts{0};
  std::vector<MPI_Aint> displs{0};
  std::vector<MPI_Datatype> types{MPI_DATATYPE_NULL};
  // What the int names take; set() makes them. MPI reads both until the operation is complete.
  std::vector<int> int_counts;
  std::vector<int> int_displs;

  void set();
};

struct Call {
  Form form;
  const void* send = nullptr;
  void* recv = nullptr; // the only buffer of a broadcast
  Vectors sent;
  Vectors received;
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
  MPI_Comm comm = MPI_COMM_NULL;
};

// Blocking calls leave the request alone; persistent ones are made and not started.
int make_call(const Call& call, MPI_Request* request);

} // namespace ferry::test
