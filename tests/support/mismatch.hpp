// SPDX-License-Identifier: MIT
// Case 82: calls whose sizes do not match between ranks.
#pragma once

#include <cstddef>
#include <string>

#include <doctest/doctest.h>
#include <ferry/ferry.h>

#include "errors.hpp"
#include "exchange.hpp"

namespace ferry::test {

struct Mismatch {
  Operation op;
  std::size_t bytes;
  int delta; // what rank 0 has more or less per block than the others
};

inline std::string describe(const Mismatch& m) {
  return std::string(name_of(m.op)) + " of " + std::to_string(m.bytes) +
         " bytes, on rank 0 more by " + std::to_string(m.delta);
}

// Blocks of rank 0 are longer or shorter by delta than those of all others. Returns the code.
inline int run_mismatch(const Mismatch& m, Form form, const Comm& comm, ferry_request* request) {
  const auto size = static_cast<std::size_t>(comm.size());
  const std::size_t own =
      comm.rank() == 0 ? m.bytes + static_cast<std::size_t>(static_cast<std::ptrdiff_t>(m.delta))
                       : m.bytes;
  const Arena send_arena(own * size);
  const Arena recv_arena(own * size);
  const View send = send_arena.view(Memory::ferry, own * size);
  const bool bcast = m.op == Operation::bcast;
  const View recv = recv_arena.view(Memory::heap, bcast ? own : own * size);
  fill(send.data(), send.bytes(), {1, comm.rank(), kEveryone});
  ferry_call call{};
  call.size = sizeof call;
  call.operation = bcast                         ? FERRY_BCAST
                   : m.op == Operation::alltoall ? FERRY_ALLTOALL
                                                 : FERRY_ALLGATHER;
  call.form = form == Form::persistent ? FERRY_PERSISTENT : FERRY_BLOCKING;
  call.sendbuf = send.data();
  call.sendcount = static_cast<MPI_Count>(own);
  call.sendtype = MPI_BYTE;
  call.recvbuf = recv.data();
  call.recvcount = static_cast<MPI_Count>(own);
  call.recvtype = MPI_BYTE;
  call.comm = comm.get();
  note(describe(m));
  const int code = ferry_collective(&call, request);
  // Others may still write to this rank's buffers until they too have returned.
  MPI_Barrier(comm.get());
  CHECK_MESSAGE(send.canaries_intact(), describe(m));
  CHECK_MESSAGE(recv.canaries_intact(), describe(m));
  return code;
}

} // namespace ferry::test
