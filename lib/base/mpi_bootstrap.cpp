// SPDX-License-Identifier: MIT
#include "lib/base/mpi_bootstrap.hpp"

#include "lib/base/error.hpp"
#include "lib/base/inside.hpp"

namespace ferry::core {
namespace {

void check(int code, const char* what) {
  if (code != MPI_SUCCESS) {
    throw Failure(
        ErrorKind::other, std::string(what) + " of the MPI below failed",
        "look at the error of the MPI below");
  }
}

class MpiBootstrap final : public Bootstrap {
 public:
  explicit MpiBootstrap(MPI_Comm comm) : comm_(comm) {
    PMPI_Comm_rank(comm, &rank_);
    PMPI_Comm_size(comm, &size_);
  }

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }

  void start_allgather(const void* mine, std::size_t bytes, void* all) override {
    const int count = static_cast<int>(bytes);
    check(
        PMPI_Iallgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, comm_, &request_),
        "MPI_Iallgather");
  }

  bool test() override {
    if (inside.mpi_closed) return false;
    int done = 0;
    check(PMPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }

  void poke() override {
    int flag = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, MPI_STATUS_IGNORE);
  }

 private:
  MPI_Comm comm_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  int rank_ = 0;
  int size_ = 1;
};

} // namespace

std::unique_ptr<Bootstrap> make_mpi_bootstrap(MPI_Comm comm) {
  return std::make_unique<MpiBootstrap>(comm);
}

} // namespace ferry::core
