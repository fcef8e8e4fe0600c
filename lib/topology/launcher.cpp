// SPDX-License-Identifier: MIT
#include "lib/topology/launcher.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace ferry::core {
namespace {

// A launcher that told a rank how many ranks it started.
struct Sign {
  const char* size; // variable with the number of ranks
  const char* rank; // variable with the number of this one
  const char* also; // must be set too, unless null
  const char* cause;
  const char* remedy;
};

constexpr const char* kInJob = "start with srun --mpi=pmi2, or with mpiexec.mpich inside the job";

// The first that holds is the one that started the process; those behind it surround it.
constexpr Sign kSigns[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", nullptr,
     "this is the mpiexec of Open MPI, the program has MPICH", "start with mpiexec.mpich"},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", nullptr,
     "this is the launcher of MVAPICH2, the program has MPICH", "start with mpiexec.mpich"},
    {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK", nullptr, "jsrun speaks PMIx, this MPI does not",
     "start with mpiexec.mpich inside the job"},
    {"PMI_SIZE", "PMI_RANK", nullptr,
     "the launcher's connection, PMI_FD or PMI_PORT, did not reach the program",
     "let the script between mpiexec.mpich and the program pass on environment and descriptors"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "PMIX_RANK",
     "srun --mpi=pmix was used (PMIX_RANK is set), this MPI speaks PMI", kInJob},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", nullptr,
     "srun was used without --mpi, or with --mpi=none", kInJob},
    {"FLUX_JOB_SIZE", "FLUX_TASK_RANK", nullptr, "flux run gave the program no PMI",
     "start with flux run -o pmi=simple"},
    {"SLURM_NTASKS", "SLURM_PROCID", nullptr, "the job script started the program by itself",
     "start with mpiexec.mpich ./program, or with srun --mpi=pmi2 ./program"},
};

int number(const LauncherVariable& get, const char* name) {
  const char* text = get(name);
  return text != nullptr ? std::atoi(text) : 0;
}

// Entries of a comma separated list; none for what Slurm writes when it gives no device.
int entries(std::string_view list) {
  if (list.empty() || list == "NoDevFiles") return 0;
  return static_cast<int>(std::count(list.begin(), list.end(), ',')) + 1;
}

// Tasks of node `node` in Slurm's notation: 4(x2),3 stands for 4, 4, 3. 0 when it ends before.
int tasks_of_node(const char* text, int node) {
  while (*text != 0) {
    char* end = nullptr;
    const auto tasks = static_cast<int>(std::strtol(text, &end, 10));
    int times = 1;
    if (end[0] == '(' && end[1] == 'x') {
      times = static_cast<int>(std::strtol(end + 2, &end, 10));
      if (*end == ')') ++end;
    }
    if (node < times) return tasks;
    node -= times;
    if (*end != ',') return 0;
    text = end + 1;
  }
  return 0;
}

} // namespace

const char* launcher_variable(const char* name) {
  return std::getenv(name);
}

std::string launcher_complaint(int world_size, const LauncherVariable& get) {
  if (world_size != 1) return {};
  // The launcher of this MPI says itself that it started one rank, whatever the job around it
  // holds.
  if (number(get, "PMI_SIZE") == 1) return {};
  for (const Sign& sign : kSigns) {
    const int ranks = number(get, sign.size);
    if (ranks <= 1 || (sign.also != nullptr && get(sign.also) == nullptr)) continue;
    if (number(get, sign.rank) > 0) return {};
    return fmt::format(
        "MPI_COMM_WORLD has 1 rank, but {}={}: every process is rank 0 of 1, since {}; {}",
        sign.size, ranks, sign.cause, sign.remedy);
  }
  return {};
}

std::string gpu_complaint(const LauncherVariable& get) {
  const int on_node = number(get, "SLURM_GPUS_ON_NODE");
  for (const char* visible : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
    const char* list = get(visible);
    if (list == nullptr) continue;
    const int seen = entries(list);
    if (seen == 0 || seen >= on_node) continue;
    std::string sign = fmt::format("{}={}", visible, list);
    for (const char* name : {"SLURM_GPUS_PER_TASK", "SLURM_GPU_BIND", "SLURMD_TRES_BIND"}) {
      if (const char* value = get(name)) sign = fmt::format("{}={}", name, value);
    }
    return fmt::format(
        "{} shows each rank {} of the {} GPUs of its node, so that it may not reach those of the "
        "others; ask with --gpus-per-node, without --gpus-per-task and with --gpu-bind=none",
        sign, seen, on_node);
  }
  return {};
}

std::string cpu_complaint(int ranks, int cores, int cores_total, const LauncherVariable& get) {
  // Outside of Slurm it is somebody's wish, or the container's.
  if (ranks <= cores || cores >= cores_total || get("SLURM_JOB_ID") == nullptr) return {};
  const char* bind = get("SLURM_CPU_BIND");
  const char* tasks = get("SLURM_TASKS_PER_NODE");
  const std::string sign = bind != nullptr
                               ? fmt::format("SLURM_CPU_BIND={}", bind)
                               : fmt::format("SLURM_TASKS_PER_NODE={}", tasks ? tasks : "?");
  return fmt::format(
      "{} ranks of a node share {} of its {} cores because of {}; ask for a core for each: "
      "--ntasks-per-node={} --cpus-per-task=1 --cpu-bind=cores",
      ranks, cores, cores_total, sign, ranks);
}

int launched_on_node(const LauncherVariable& get) {
  if (const int ranks = number(get, "MPI_LOCALNRANKS"); ranks > 0) return ranks;
  const char* text = get("SLURM_STEP_TASKS_PER_NODE");
  return text != nullptr ? tasks_of_node(text, number(get, "SLURM_NODEID")) : 0;
}

} // namespace ferry::core
