// SPDX-License-Identifier: MIT
// Each block must not compile, and for the reason in its first line; the file without a block must.
// rejected.py compiles them one at a time with -DCASE_<NAME>.
#include <array>
#include <list>
#include <span>
#include <string>
#include <vector>

#include <ferry/ferry.hpp>

void control(const ferry::Communicator& comm, std::vector<int>& a, std::vector<int>& b) {
  comm.alltoall(a, b).or_throw();
#ifdef CASE_TEMPORARY_RECEIVER // says: constraints not satisfied
  ferry::Request request = comm.ialltoall(a, std::vector<int>(8));
#endif
#ifdef CASE_TEMPORARY_SENDER // says: constraints not satisfied
  ferry::Plan plan = comm.allgather_init(std::vector<int>(8), b);
#endif
#ifdef CASE_CONST_RECEIVER // says: constraints not satisfied
  comm.alltoall(a, std::span<const int>(b)).or_throw();
#endif
#ifdef CASE_DIFFERENT_ELEMENTS // says: constraints not satisfied
  std::vector<unsigned> other(8);
  comm.alltoall(a, other).or_throw();
#endif
#ifdef CASE_POINTER_ELEMENTS // says: constraints not satisfied
  std::vector<int*> pointers(8);
  comm.broadcast(pointers, 0).or_throw();
#endif
#ifdef CASE_STRING_ELEMENTS // says: constraints not satisfied
  std::vector<std::string> strings(8);
  comm.broadcast(strings, 0).or_throw();
#endif
#ifdef CASE_PACKED_BOOLS // says: constraints not satisfied
  std::vector<bool> bits(8);
  comm.broadcast(bits, 0).or_throw();
#endif
#ifdef CASE_SCATTERED_MEMORY // says: constraints not satisfied
  std::list<int> list(8);
  comm.broadcast(list, 0).or_throw();
#endif
#ifdef CASE_REDUCED_STRUCTS // says: constraints not satisfied
  struct Pair {
    int a, b;
  };
  std::vector<Pair> pairs(8);
  comm.allreduce(pairs, ferry::Op::sum).or_throw();
#endif
#ifdef CASE_REDUCED_BOOLS // says: constraints not satisfied
  std::array<bool, 8> flags = {};
  comm.allreduce(flags, ferry::Op::max).or_throw();
#endif
#ifdef CASE_CONST_RESULT // says: constraints not satisfied
  comm.reduce(a, std::span<const int>(b), ferry::Op::sum, 0).or_throw();
#endif
#ifdef CASE_SWAPPED_ROOT_AND_OP // says: no matching function
  comm.reduce(a, b, 0, ferry::Op::sum).or_throw();
#endif
#ifdef CASE_BLOCKS_WITHOUT_DISPLACEMENTS // says: no matching function
  comm.allgatherv(a, b, std::vector<MPI_Count>(8)).or_throw();
#endif
}

void control_objects(const ferry::Communicator& comm, std::vector<int>& a, std::vector<int>& b) {
  ferry::Request first = comm.ialltoall(a, b);
#ifdef CASE_IGNORED_STATUS // says: unused-result
  comm.alltoall(a, b);
#endif
#ifdef CASE_IGNORED_REQUEST // says: unused-result
  comm.ialltoall(a, b);
#endif
#ifdef CASE_COPIED_PLAN // says: use of deleted function
  ferry::Plan plan = comm.alltoall_init(a, b);
  ferry::Plan twin = plan;
#endif
#ifdef CASE_COPIED_REQUEST // says: use of deleted function
  ferry::Request request = comm.ialltoall(a, b);
  ferry::Request twin = request;
#endif
#ifdef CASE_COPIED_ARRAY // says: use of deleted function
  ferry::SharedArray<int> array(8);
  ferry::SharedArray<int> twin = array;
#endif
#ifdef CASE_ARRAY_OF_STRINGS // says: constraint failure
  ferry::SharedArray<std::string> array(8);
#endif
#ifdef CASE_IMPLICIT_COMMUNICATOR // says: conversion from
  ferry::Communicator world = MPI_COMM_WORLD;
#endif
}
