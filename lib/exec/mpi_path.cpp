// SPDX-License-Identifier: MIT
#include "lib/exec/mpi_path.hpp"

#include <string>

namespace ferry::core {

void MpiPath::note(int code) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  PMPI_Error_string(code, text, &length);
  status_ = {ErrorKind::other, "the MPI below reports: " + std::string(text), "see its text"};
}

void MpiPath::start(MPI_Comm comm, const CollectiveDesc& desc) {
  status_ = {};
  const auto bytes = static_cast<MPI_Count>(desc.block_bytes());
  const void* send = desc.in_place ? MPI_IN_PLACE : desc.send;
  switch (desc.operation) {
    case Operation::alltoall:
      note(PMPI_Ialltoall_c(
          send, bytes, MPI_BYTE, desc.recv, bytes, MPI_BYTE, comm, &request_));
      return;
    case Operation::allgather:
      note(PMPI_Iallgather_c(
          send, bytes, MPI_BYTE, desc.recv, bytes, MPI_BYTE, comm, &request_));
      return;
    case Operation::broadcast:
      note(PMPI_Ibcast_c(desc.recv, bytes, MPI_BYTE, desc.root, comm, &request_));
      return;
  }
}

Poll MpiPath::progress() {
  if (request_ == MPI_REQUEST_NULL) return Poll::ready;
  int done = 0;
  note(PMPI_Test(&request_, &done, MPI_STATUS_IGNORE));
  return done != 0 || !status_.ok() ? Poll::ready : Poll::pending;
}

}  // namespace ferry::core
