// SPDX-License-Identifier: MIT
// A program of MPI with buffers in GPU memory, which knows nothing of Ferry, for an MPI that knows
// nothing of GPUs: under ferry-run its collectives work all the same. Skips without a GPU.
#include <cuda_runtime_api.h>
#include <mpi.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kSkipped = 77;
constexpr int kSizes[] = {1, 1000, 300'000}; // ints a block

int rank = 0;
int ranks = 1;
int faults = 0;

void expect(bool fine, const char* what, int count) {
  if (fine || ++faults > 20) return;
  std::fprintf(stderr, "rank %d: %s of %d ints a block is wrong\n", rank, what, count);
}

void must(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "rank %d: %s\n", rank, cudaGetErrorString(code));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int value(int round, int from, int to, int i) {
  return ((round * 64 + from) * 64 + to) * 1'000'003 + i;
}

// Ints in GPU memory.
class Buffer {
 public:
  explicit Buffer(std::size_t count) : count_(count) {
    must(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(int)));
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { static_cast<void>(cudaFree(data_)); }
  [[nodiscard]] int* data() const { return data_; }
  void write(const std::vector<int>& from) {
    must(cudaMemcpy(data_, from.data(), count_ * sizeof(int), cudaMemcpyHostToDevice));
  }
  [[nodiscard]] std::vector<int> read() const {
    std::vector<int> to(count_);
    must(cudaMemcpy(to.data(), data_, count_ * sizeof(int), cudaMemcpyDeviceToHost));
    return to;
  }

 private:
  std::size_t count_;
  int* data_ = nullptr;
};

struct Trial {
  explicit Trial(int ints)
      : count(ints), all(static_cast<std::size_t>(ints * ranks)), send(all), recv(all) {}

  void prepare(int round) {
    std::vector<int> from(all);
    for (int to = 0; to < ranks; ++to) {
      for (int i = 0; i < count; ++i) {
        from[static_cast<std::size_t>(to * count + i)] = value(round, rank, to, i);
      }
    }
    send.write(from);
    recv.write(std::vector<int>(all, -1));
  }
  // What came from each rank is its block for `to`.
  void check(int round, int to, const char* what) const {
    const std::vector<int> got = recv.read();
    bool right = true;
    for (int from = 0; from < ranks; ++from) {
      for (int i = 0; i < count; ++i) {
        right =
            right && got[static_cast<std::size_t>(from * count + i)] == value(round, from, to, i);
      }
    }
    expect(right, what, count);
  }

  int count;
  std::size_t all;
  Buffer send;
  Buffer recv;
};

void try_alltoall(Trial& trial) {
  trial.prepare(1);
  MPI_Alltoall(
      trial.send.data(), trial.count, MPI_INT, trial.recv.data(), trial.count, MPI_INT,
      MPI_COMM_WORLD);
  trial.check(1, rank, "MPI_Alltoall");
  trial.prepare(2);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ialltoall(
      trial.send.data(), trial.count, MPI_INT, trial.recv.data(), trial.count, MPI_INT,
      MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  trial.check(2, rank, "MPI_Ialltoall");
  MPI_Alltoall_init(
      trial.send.data(), trial.count, MPI_INT, trial.recv.data(), trial.count, MPI_INT,
      MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int round = 3; round < 8; ++round) {
    trial.prepare(round);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    trial.check(round, rank, "MPI_Alltoall_init");
  }
  MPI_Request_free(&request);
}

void try_others(Trial& trial) {
  trial.prepare(10);
  MPI_Allgather(
      trial.send.data(), trial.count, MPI_INT, trial.recv.data(), trial.count, MPI_INT,
      MPI_COMM_WORLD);
  trial.check(10, 0, "MPI_Allgather");
  trial.prepare(11);
  Buffer& message = rank == ranks - 1 ? trial.send : trial.recv;
  MPI_Bcast(message.data(), trial.count, MPI_INT, ranks - 1, MPI_COMM_WORLD);
  const std::vector<int> got = message.read();
  bool right = true;
  for (int i = 0; i < trial.count; ++i) {
    right = right && got[static_cast<std::size_t>(i)] == value(11, ranks - 1, 0, i);
  }
  expect(right, "MPI_Bcast", trial.count);
  const std::vector<int> ones(trial.all, rank + 1);
  trial.send.write(ones);
  MPI_Allreduce(
      trial.send.data(), trial.recv.data(), trial.count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const std::vector<int> sums = trial.recv.read();
  right = true;
  for (int i = 0; i < trial.count; ++i) {
    right = right && sums[static_cast<std::size_t>(i)] == ranks * (ranks + 1) / 2;
  }
  expect(right, "MPI_Allreduce", trial.count);
}

} // namespace

int main(int argc, char** argv) {
  int gpus = 0;
  const bool any = cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (!any) {
    if (rank == 0) std::printf("skipped: no NVIDIA GPU\n");
    MPI_Finalize();
    return kSkipped;
  }
  must(cudaSetDevice(rank % gpus));
  for (const int count : kSizes) {
    Trial trial(count);
    try_alltoall(trial);
    try_others(trial);
  }
  MPI_Allreduce(MPI_IN_PLACE, &faults, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("doctest-counts: %d passed, %d failed\n", faults == 0, faults != 0);
  MPI_Finalize();
  return faults == 0 ? 0 : 1;
}
