// SPDX-License-Identifier: MIT
// Rank 0 knows the settings, everyone gets them; and what an error looks like.
#include <array>
#include <cstdio>
#include <span>
#include <string>

#include <ferry/ferry.hpp>

namespace {

struct Settings { // trivially copyable: travels as bytes
  double step = 0;
  int cells = 0;
  std::array<char, 16> name{};
};

bool right_everywhere(const ferry::Communicator& world) {
  Settings settings;
  if (world.rank() == 0) settings = {0.25, 4096, {"cavity"}};
  const ferry::Status status = world.broadcast(std::span(&settings, 1), 0);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.text().c_str());
    return false;
  }
  return settings.step == 0.25 && settings.cells == 4096 &&
         std::string(settings.name.data()) == "cavity";
}

// Nothing is sent: the root is checked before the first byte moves.
bool refused(const ferry::Communicator& world) {
  Settings settings;
  const ferry::Status status = world.broadcast(std::span(&settings, 1), world.size());
  if (world.rank() == 0) std::printf("%s\n", status.text().c_str());
  return status.code() == MPI_ERR_ROOT;
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const ferry::Communicator world(MPI_COMM_WORLD);
  int wrong = right_everywhere(world) && refused(world) ? 0 : 1;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return wrong;
}
