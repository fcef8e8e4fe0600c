// SPDX-License-Identifier: MIT
#include "lib/base/mpi_bootstrap.hpp"

#include <algorithm>
#include <atomic>
#include <functional>

#include "lib/base/error.hpp"
#include "lib/base/inside.hpp"

namespace ferry::core {
namespace {

constexpr int kNobodysTag = 32767; // a probe that finds a message makes no progress

void check(int code, const char* what) {
  if (code != MPI_SUCCESS) {
    throw Failure(
        ErrorKind::other, std::string(what) + " of the MPI below failed",
        "look at the error of the MPI below");
  }
}

// One direction of an exchange as MPI wants it. The lowest part is the buffer, so that all
// displacements are positive.
struct Side {
  std::vector<MPI_Count> counts;
  std::vector<MPI_Aint> displs;
  std::byte* base = nullptr;

  Side(const std::vector<ExchangePart>& parts, int ranks)
      : counts(static_cast<std::size_t>(ranks)), displs(static_cast<std::size_t>(ranks)) {
    for (const ExchangePart& part : parts) {
      auto* data = static_cast<std::byte*>(part.data);
      if (base == nullptr || std::less<>{}(data, base)) base = data;
    }
    for (const ExchangePart& part : parts) {
      counts[static_cast<std::size_t>(part.rank)] = static_cast<MPI_Count>(part.bytes);
      displs[static_cast<std::size_t>(part.rank)] = static_cast<std::byte*>(part.data) - base;
    }
  }
};

// A persistent alltoallv whose counts are zero but for the parts. It moves in the collective
// context of the user's communicator, where no receive of the user can meet it, and takes its tag
// when it is set up, so that starts need no order. A rank without parts has nothing to start: MPICH
// skips zero counts.
class MpiExchange final : public Exchange {
 public:
  MpiExchange(
      MPI_Comm comm, int ranks, const std::vector<ExchangePart>& sends,
      const std::vector<ExchangePart>& receives)
      : send_(sends, ranks), recv_(receives, ranks), idle_(sends.empty() && receives.empty()) {
    check(
        PMPI_Alltoallv_init_c(
            send_.base, send_.counts.data(), send_.displs.data(), MPI_BYTE, recv_.base,
            recv_.counts.data(), recv_.displs.data(), MPI_BYTE, comm, MPI_INFO_NULL, &request_),
        "MPI_Alltoallv_init");
  }
  ~MpiExchange() override {
    int finalized = 0;
    PMPI_Finalized(&finalized);
    // After an error it may be under way for ever.
    if (finalized == 0 && !started_) PMPI_Request_free(&request_);
  }

  void start() override {
    if (idle_) return;
    check(PMPI_Start(&request_), "MPI_Start");
    started_ = true;
  }

  bool test() override {
    if (!started_) return true;
    if (inside.mpi_closed) return false;
    int done = 0;
    check(PMPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    started_ = done == 0;
    return !started_;
  }

 private:
  Side send_;
  Side recv_;
  bool idle_;
  bool started_ = false;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class MpiBootstrap final : public Bootstrap {
 public:
  explicit MpiBootstrap(MPI_Comm comm) : comm_(comm) {
    PMPI_Comm_rank(comm, &rank_);
    PMPI_Comm_size(comm, &size_);
    probed_ = comm;
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

  std::unique_ptr<Exchange> prepare(
      const std::vector<ExchangePart>& sends, const std::vector<ExchangePart>& receives) override {
    return std::make_unique<MpiExchange>(comm_, size_, sends, receives);
  }

  void poke() override {
    int flag = 0;
    const MPI_Comm probed = probed_.load(std::memory_order_relaxed);
    if (probed == MPI_COMM_NULL) return;
    PMPI_Iprobe(MPI_ANY_SOURCE, kNobodysTag, probed, &flag, MPI_STATUS_IGNORE);
  }

  void detach() override {
    int world = 0; // a session has none; probes of MPI_COMM_SELF would make no progress
    PMPI_Initialized(&world);
    probed_ = world != 0 && comm_ != MPI_COMM_WORLD ? MPI_COMM_WORLD : MPI_COMM_NULL;
  }

 private:
  MPI_Comm comm_;
  std::atomic<MPI_Comm> probed_{MPI_COMM_NULL};
  MPI_Request request_ = MPI_REQUEST_NULL;
  int rank_ = 0;
  int size_ = 1;
};

} // namespace

std::unique_ptr<Bootstrap> make_mpi_bootstrap(MPI_Comm comm) {
  return std::make_unique<MpiBootstrap>(comm);
}

} // namespace ferry::core
