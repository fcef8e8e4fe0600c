// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/device/sides.hpp"

#include <span>
#include <stdexcept>

#include "apps/ferry-bench/pattern.hpp"

namespace ferry::bench {

namespace {

int rank_of(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

// The message of a broadcast lies in the send buffer of rank 0 and in the receive buffers of
// others.
class FerrySide final : public Side {
 public:
  explicit FerrySide(MPI_Comm comm) : comm_(comm) {}
  ~FerrySide() override { release(); }

  [[nodiscard]] std::string name() const override { return "ferry"; }
  [[nodiscard]] std::string path() const override {
    char text[512] = "";
    ferry_explain(request_, text, sizeof text);
    return text;
  }
  void prepare(const DeviceCall& call) override {
    release();
    send_ = std::make_unique<GpuBuffer>(send_bytes(call, size_of(comm_)));
    recv_ = std::make_unique<GpuBuffer>(recv_bytes(call, size_of(comm_)));
    const auto count = static_cast<MPI_Count>(call.bytes);
    int rc = MPI_SUCCESS;
    if (call.operation == FERRY_ALLTOALL) {
      rc = ferry_alltoall_init(
          send(), count, MPI_BYTE, recv(), count, MPI_BYTE, comm_, MPI_INFO_NULL, &request_);
    } else if (call.operation == FERRY_ALLGATHER) {
      rc = ferry_allgather_init(
          send(), count, MPI_BYTE, recv(), count, MPI_BYTE, comm_, MPI_INFO_NULL, &request_);
    } else {
      void* const buffer = rank_of(comm_) == 0 ? send() : recv();
      rc = ferry_bcast_init(buffer, count, MPI_BYTE, 0, comm_, MPI_INFO_NULL, &request_);
    }
    check(rc);
  }
  void queue(GpuStream stream) override { check(ferry_start_on_stream(request_, stream)); }
  [[nodiscard]] void* send() const override { return send_->get(); }
  [[nodiscard]] void* recv() const override { return recv_->get(); }

 private:
  static void check(int rc) {
    if (rc != MPI_SUCCESS) throw std::runtime_error(ferry_error_text());
  }
  void release() {
    if (request_ != FERRY_REQUEST_NULL) ferry_request_free(&request_);
  }

  MPI_Comm comm_;
  ferry_request request_ = FERRY_REQUEST_NULL;
  std::unique_ptr<GpuBuffer> send_;
  std::unique_ptr<GpuBuffer> recv_;
};

class NcclSide final : public Side {
 public:
  NcclSide(NcclMode mode, MPI_Comm comm, std::uint64_t longest)
      : mode_(mode), nccl_(mode, rank_of(comm), size_of(comm), [comm](void* data, std::size_t n) {
          MPI_Bcast(data, static_cast<int>(n), MPI_BYTE, 0, comm);
        }) {
    const auto bytes = longest * static_cast<std::uint64_t>(size_of(comm));
    send_ = nccl_.allocate(bytes);
    recv_ = nccl_.allocate(bytes);
  }

  [[nodiscard]] std::string name() const override { return std::string("nccl ") + name_of(mode_); }
  [[nodiscard]] std::string path() const override { return "NCCL " + nccl_.version(); }
  void prepare(const DeviceCall& call) override { call_ = call; }
  void queue(GpuStream stream) override {
    if (call_.operation == FERRY_ALLTOALL) nccl_.alltoall(send_, recv_, call_.bytes, stream);
    if (call_.operation == FERRY_ALLGATHER) nccl_.allgather(send_, recv_, call_.bytes, stream);
    if (call_.operation == FERRY_BCAST) nccl_.broadcast(send_, recv_, call_.bytes, 0, stream);
  }
  [[nodiscard]] void* send() const override { return send_; }
  [[nodiscard]] void* recv() const override { return recv_; }

 private:
  NcclMode mode_;
  Nccl nccl_;
  DeviceCall call_;
  void* send_ = nullptr;
  void* recv_ = nullptr;
};

Block block_of(std::uint64_t round, int sender, int receiver) {
  return {0xfe44, round, sender, receiver};
}

std::span<std::byte> bytes_of(std::vector<unsigned char>& data) {
  return std::as_writable_bytes(std::span(data));
}

} // namespace

std::uint64_t send_bytes(const DeviceCall& call, int ranks) {
  return call.operation == FERRY_ALLTOALL ? call.bytes * static_cast<std::uint64_t>(ranks)
                                          : call.bytes;
}

std::uint64_t recv_bytes(const DeviceCall& call, int ranks) {
  return call.operation == FERRY_BCAST ? call.bytes
                                       : call.bytes * static_cast<std::uint64_t>(ranks);
}

std::unique_ptr<Side> make_ferry_side(MPI_Comm comm) {
  return std::make_unique<FerrySide>(comm);
}

std::unique_ptr<Side> make_nccl_side(NcclMode mode, MPI_Comm comm, std::uint64_t longest) {
  return std::make_unique<NcclSide>(mode, comm, longest);
}

std::uint64_t check_side(
    Side& side, const DeviceCall& call, const OwnedStream& stream, MPI_Comm comm,
    std::uint64_t round) {
  const int rank = rank_of(comm);
  const int ranks = size_of(comm);
  const bool spread = call.operation == FERRY_ALLTOALL;
  std::vector<unsigned char> out(send_bytes(call, ranks));
  for (int peer = 0; peer < (spread ? ranks : 1); ++peer) {
    write_data(
        bytes_of(out).subspan(static_cast<std::uint64_t>(peer) * call.bytes, call.bytes),
        block_of(round, rank, spread ? peer : kEveryone));
  }
  write_gpu(side.send(), out);
  std::vector<unsigned char> in(recv_bytes(call, ranks));
  write_poison(bytes_of(in), block_of(round, rank, kEveryone));
  write_gpu(side.recv(), in);
  MPI_Barrier(comm);
  side.queue(stream.get());
  stream.synchronize();
  std::uint64_t wrong = 0;
  const bool bcast = call.operation == FERRY_BCAST;
  in = read_gpu(side.recv(), in.size());
  for (int sender = 0; sender < (bcast ? 1 : ranks); ++sender) {
    if (bcast && rank == 0) continue; // it has the message already
    wrong += count_wrong(
        bytes_of(in).subspan(static_cast<std::uint64_t>(sender) * call.bytes, call.bytes),
        block_of(round, sender, spread ? rank : kEveryone));
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, comm);
  return wrong;
}

} // namespace ferry::bench
