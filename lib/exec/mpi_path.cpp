// SPDX-License-Identifier: MIT
#include "lib/exec/mpi_path.hpp"

#include <string>
#include <utility>

#include "lib/base/inside.hpp"

namespace ferry::core {

void CommHold::hold(MPI_Comm comm) {
  if (token_ != MPI_REQUEST_NULL || comm == MPI_COMM_NULL) return;
  PMPI_Send_init(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, &token_);
}

void CommHold::release() {
  if (token_ == MPI_REQUEST_NULL || inside.mpi_closed) return;
  int finalized = 0;
  PMPI_Finalized(&finalized);
  // May free the communicator here and now, and with it the state that hangs on it.
  MPI_Request token = std::exchange(token_, MPI_REQUEST_NULL);
  if (finalized == 0) PMPI_Request_free(&token);
}

void MpiPath::note(int code) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  PMPI_Error_string(code, text, &length);
  status_ = {ErrorKind::below, "the MPI below reports: " + std::string(text), "see its text"};
}

void MpiPath::start(MPI_Comm comm, const CollectiveDesc& desc) {
  status_ = {};
  const auto bytes = static_cast<MPI_Count>(desc.block_bytes());
  const void* send = desc.in_place ? MPI_IN_PLACE : desc.send;
  switch (desc.operation) {
    case Operation::alltoall:
      note(PMPI_Ialltoall_c(send, bytes, MPI_BYTE, desc.recv, bytes, MPI_BYTE, comm, &request_));
      return;
    case Operation::allgather:
      note(PMPI_Iallgather_c(send, bytes, MPI_BYTE, desc.recv, bytes, MPI_BYTE, comm, &request_));
      return;
    case Operation::broadcast:
      note(PMPI_Ibcast_c(desc.recv, bytes, MPI_BYTE, desc.root, comm, &request_));
      return;
  }
}

Poll MpiPath::progress() {
  if (request_ == MPI_REQUEST_NULL) return Poll::ready;
  if (inside.mpi_closed) return Poll::pending;
  int done = 0;
  note(PMPI_Test(&request_, &done, MPI_STATUS_IGNORE));
  return done != 0 || !status_.ok() ? Poll::ready : Poll::pending;
}

} // namespace ferry::core
