// SPDX-License-Identifier: MIT
// Planned once, started often: every rank sends block i of `send` to rank i.
#include <cstdio>

#include <ferry/ferry.hpp>

namespace {

constexpr int kBlock = 1024; // doubles for each peer
constexpr int kSteps = 5;

double value(int step, int from, int to, int i) {
  return 1e6 * step + 1e4 * from + 1e3 * to + i;
}

void fill(ferry::SharedArray<double>& send, int step, int rank) {
  for (std::size_t i = 0; i < send.size(); ++i) {
    const int at = static_cast<int>(i);
    send[i] = value(step, rank, at / kBlock, at % kBlock);
  }
}

int count_wrong(const ferry::SharedArray<double>& recv, int step, int rank) {
  int wrong = 0;
  for (std::size_t i = 0; i < recv.size(); ++i) {
    const int at = static_cast<int>(i);
    wrong += recv[i] != value(step, at / kBlock, rank, at % kBlock) ? 1 : 0;
  }
  return wrong;
}

int run() {
  int wrong = 0;
  const ferry::Communicator world(MPI_COMM_WORLD);
  const auto size = static_cast<std::size_t>(world.size());
  ferry::SharedArray<double> send(size * kBlock), recv(size * kBlock);
  ferry::Plan plan = world.alltoall_init(send, recv);
  for (int step = 0; step < kSteps; ++step) {
    fill(send, step, world.rank());
    plan.start().or_throw();
    plan.wait().or_throw();
    wrong += count_wrong(recv, step, world.rank());
  }
  if (world.rank() == 0) std::printf("%s\n", plan.explain().c_str());
  return wrong;
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int wrong = run(); // plans and arrays are gone before MPI_Finalize
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
