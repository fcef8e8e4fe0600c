// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <unistd.h>
#include <cstdio>

namespace {

// Open MPI has handles of another kind: the first call would go astray. Before it comes to that:
__attribute__((constructor)) void refuse_open_mpi() {
  if (dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") == nullptr) return;
  std::fputs(
      "ferry: this program is linked with Open MPI, and libferry-mpi.so serves programs of MPICH; "
      "build it with mpicc.mpich, or start it without ferry-run\n",
      stderr);
  std::fflush(stderr);
  _exit(127);
}

} // namespace
