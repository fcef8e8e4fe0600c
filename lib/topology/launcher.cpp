// SPDX-License-Identifier: MIT
#include "lib/topology/launcher.hpp"

#include <fmt/format.h>
#include <cstdlib>

namespace ferry::core {
namespace {

struct Sign {
  const char* variable;
  const char* remedy;
};

// Variables in which launchers tell a rank how many ranks they started.
constexpr Sign kSigns[] = {
    {"OMPI_COMM_WORLD_SIZE", "this is the mpiexec of Open MPI: start with mpiexec.mpich"},
    {"SLURM_STEP_NUM_TASKS", "start with srun --mpi=pmi2, or with mpiexec.mpich inside the job"},
    {"PMI_SIZE", "start with the mpiexec of this MPI, mpiexec.mpich"},
    {"SLURM_NTASKS", "start with srun --mpi=pmi2, or with mpiexec.mpich inside the job"},
};

} // namespace

std::string launcher_complaint(int world_size) {
  if (world_size != 1) return {};
  // The launcher of this MPI says itself that it started one rank, whatever the job around it
  // holds.
  const char* pmi = std::getenv("PMI_SIZE");
  if (pmi != nullptr && std::atoi(pmi) == 1) return {};
  for (const Sign& sign : kSigns) {
    const char* text = std::getenv(sign.variable);
    const int ranks = text != nullptr ? std::atoi(text) : 0;
    if (ranks <= 1) continue;
    return fmt::format(
        "MPI_COMM_WORLD has 1 rank, but {}={}: every process is rank 0 of 1; {}", sign.variable,
        ranks, sign.remedy);
  }
  return {};
}

} // namespace ferry::core
