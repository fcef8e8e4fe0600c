// SPDX-License-Identifier: MIT
// Start s gives element i of rank r the value 1000 s + 10 r + i, and every rank must see all of
// them.
#include <cstdio>
#include <vector>

#include <ferry/device.hpp>
#include <ferry/ferry.hpp>

// Wrong elements over three starts of one plan.
int run() {
  const ferry::Communicator world(MPI_COMM_WORLD);
  ferry::SharedArray<int> send(2);
  std::vector<int> recv(2 * static_cast<std::size_t>(world.size()));
  ferry::Plan plan = world.allgather_init(send, recv);
  int wrong = 0;
  for (int start = 1; start <= 3; ++start) {
    for (int i = 0; i < 2; ++i)
      send[static_cast<std::size_t>(i)] = 1000 * start + 10 * world.rank() + i;
    plan.start().or_throw();
    plan.wait().or_throw();
    for (std::size_t i = 0; i < recv.size(); ++i) {
      const int expected = 1000 * start + 10 * static_cast<int>(i / 2) + static_cast<int>(i % 2);
      wrong += recv[i] != expected ? 1 : 0;
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (world.rank() == 0) std::printf("C++: %d ranks, %d wrong elements\n", world.size(), wrong);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int wrong = run();
  MPI_Finalize();
  return wrong != 0 ? 1 : 0;
}
