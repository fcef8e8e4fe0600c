// SPDX-License-Identifier: MIT
#include "apps/ferry-bench/device/sides.hpp"

#include <fmt/format.h>

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

void check(int rc) {
  if (rc != MPI_SUCCESS) throw std::runtime_error(ferry_error_text());
}

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
    const Parts out = sent_by(call, rank_of(comm_), size_of(comm_));
    const Parts in = received_by(call, rank_of(comm_), size_of(comm_));
    send_ = std::make_unique<GpuBuffer>(out.all);
    recv_ = std::make_unique<GpuBuffer>(in.all);
    request_ = make_request(call, send(), recv(), comm_);
  }
  void queue(GpuStream stream) override { check(ferry_start_on_stream(request_, stream)); }
  [[nodiscard]] void* send() const override { return send_->get(); }
  [[nodiscard]] void* recv() const override { return recv_->get(); }

 private:
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
      : comm_(comm),
        mode_(mode),
        nccl_(mode, rank_of(comm), size_of(comm), [comm](void* data, std::size_t n) {
          MPI_Bcast(data, static_cast<int>(n), MPI_BYTE, 0, comm);
        }) {
    const auto bytes = (longest / 2 + kSpare) * 3 * static_cast<std::uint64_t>(size_of(comm));
    send_ = nccl_.allocate(bytes);
    recv_ = nccl_.allocate(bytes);
  }

  [[nodiscard]] std::string name() const override {
    return fmt::format("{} {}", kNcclName, name_of(mode_));
  }
  [[nodiscard]] std::string path() const override {
    return fmt::format("{} {}", kNcclName, nccl_.version());
  }
  void prepare(const DeviceCall& call) override {
    call_ = call;
    out_ = sent_by(call, rank_of(comm_), size_of(comm_));
    in_ = received_by(call, rank_of(comm_), size_of(comm_));
  }
  void queue(GpuStream stream) override {
    if (call_.operation == FERRY_ALLTOALL) nccl_.alltoall(send_, recv_, call_.bytes, stream);
    if (call_.operation == FERRY_ALLGATHER) nccl_.allgather(send_, recv_, call_.bytes, stream);
    if (call_.operation == FERRY_BCAST) nccl_.broadcast(send_, recv_, call_.bytes, 0, stream);
    const bool uneven = call_.operation == FERRY_ALLTOALLV || call_.operation == FERRY_ALLGATHERV;
    if (uneven)
      nccl_.exchange({send_, out_.bytes, out_.offsets}, {recv_, in_.bytes, in_.offsets}, stream);
  }
  [[nodiscard]] void* send() const override { return send_; }
  [[nodiscard]] void* recv() const override { return recv_; }

 private:
  static constexpr std::uint64_t kSpare = 8; // uneven blocks are rounded up

  MPI_Comm comm_;
  NcclMode mode_;
  Nccl nccl_;
  DeviceCall call_;
  Parts out_;
  Parts in_;
  void* send_ = nullptr;
  void* recv_ = nullptr;
};

Block block_of(std::uint64_t round, int sender, int receiver) {
  return {0xfe44, round, sender, receiver};
}

// Whether a rank has another block for each peer.
bool spreads(const DeviceCall& call) {
  return call.operation == FERRY_ALLTOALL || call.operation == FERRY_ALLTOALLV;
}

std::span<std::byte> bytes_of(std::vector<unsigned char>& data) {
  return std::as_writable_bytes(std::span(data));
}

} // namespace

ferry_request make_request(const DeviceCall& call, void* send, void* recv, MPI_Comm comm) {
  const int rank = rank_of(comm);
  const Parts out = sent_by(call, rank, size_of(comm));
  const Parts in = received_by(call, rank, size_of(comm));
  const auto count = static_cast<MPI_Count>(call.bytes);
  const std::vector<MPI_Count> sends(out.bytes.begin(), out.bytes.end());
  const std::vector<MPI_Count> recvs(in.bytes.begin(), in.bytes.end());
  const std::vector<MPI_Aint> send_at(out.offsets.begin(), out.offsets.end());
  const std::vector<MPI_Aint> recv_at(in.offsets.begin(), in.offsets.end());
  const MPI_Info info = MPI_INFO_NULL;
  ferry_request request = FERRY_REQUEST_NULL;
  switch (call.operation) {
    case FERRY_ALLGATHER:
      check(
          ferry_allgather_init(send, count, MPI_BYTE, recv, count, MPI_BYTE, comm, info, &request));
      break;
    case FERRY_ALLGATHERV:
      check(ferry_allgatherv_init(
          send, sends.front(), MPI_BYTE, recv, recvs.data(), recv_at.data(), MPI_BYTE, comm, info,
          &request));
      break;
    case FERRY_ALLTOALLV:
      check(ferry_alltoallv_init(
          send, sends.data(), send_at.data(), MPI_BYTE, recv, recvs.data(), recv_at.data(),
          MPI_BYTE, comm, info, &request));
      break;
    case FERRY_BCAST:
      check(ferry_bcast_init(rank == 0 ? send : recv, count, MPI_BYTE, 0, comm, info, &request));
      break;
    default:
      check(
          ferry_alltoall_init(send, count, MPI_BYTE, recv, count, MPI_BYTE, comm, info, &request));
  }
  return request;
}

std::unique_ptr<Side> make_ferry_side(MPI_Comm comm) {
  return std::make_unique<FerrySide>(comm);
}

std::unique_ptr<Side> make_nccl_side(NcclMode mode, MPI_Comm comm, std::uint64_t longest) {
  return std::make_unique<NcclSide>(mode, comm, longest);
}

void fill_buffers(
    void* send, void* recv, const DeviceCall& call, MPI_Comm comm, std::uint64_t round) {
  const int rank = rank_of(comm);
  const Parts parts = sent_by(call, rank, size_of(comm));
  std::vector<unsigned char> out(parts.all);
  for (int peer = 0; peer < size_of(comm); ++peer) {
    const auto p = static_cast<std::size_t>(peer);
    write_data(
        bytes_of(out).subspan(parts.offsets[p], parts.bytes[p]),
        block_of(round, rank, spreads(call) ? peer : kEveryone));
  }
  write_gpu(send, out);
  std::vector<unsigned char> in(received_by(call, rank, size_of(comm)).all);
  write_poison(bytes_of(in), block_of(round, rank, kEveryone));
  write_gpu(recv, in);
}

std::uint64_t wrong_bytes(
    const void* recv, const DeviceCall& call, MPI_Comm comm, std::uint64_t round) {
  const int rank = rank_of(comm);
  const Parts parts = received_by(call, rank, size_of(comm));
  std::vector<unsigned char> in = read_gpu(recv, parts.all);
  std::uint64_t wrong = 0;
  for (int sender = 0; sender < size_of(comm); ++sender) {
    const auto s = static_cast<std::size_t>(sender);
    wrong += count_wrong(
        bytes_of(in).subspan(parts.offsets[s], parts.bytes[s]),
        block_of(round, sender, spreads(call) ? rank : kEveryone));
  }
  return wrong;
}

std::uint64_t check_side(
    Side& side, const DeviceCall& call, const OwnedStream& stream, MPI_Comm comm,
    std::uint64_t round) {
  fill_buffers(side.send(), side.recv(), call, comm, round);
  MPI_Barrier(comm);
  side.queue(stream.get());
  stream.synchronize();
  std::uint64_t wrong = wrong_bytes(side.recv(), call, comm, round);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, comm);
  return wrong;
}

} // namespace ferry::bench
