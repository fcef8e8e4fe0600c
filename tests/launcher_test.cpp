// SPDX-License-Identifier: MIT
// Lines about wrong starts, from the variables that launchers set. tests/slurm has the same with a
// real Slurm.
#include <doctest/doctest.h>
#include <map>
#include <string>

#include "lib/topology/launcher.hpp"

namespace {

using namespace ferry::core;
using Environment = std::map<std::string, std::string>;

LauncherVariable variables(const Environment& environment) {
  return [&environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE(
    "launcher, case 110: every wrong start is named with its variable and the right command") {
  struct Wrong {
    Environment environment;
    const char* sign;
    const char* remedy;
  };
  const Wrong all[] = {
      {{{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}},
       "OMPI_COMM_WORLD_SIZE=4",
       "mpiexec.mpich"},
      {{{"MV2_COMM_WORLD_SIZE", "4"}}, "MV2_COMM_WORLD_SIZE=4", "mpiexec.mpich"},
      {{{"JSM_NAMESPACE_SIZE", "4"}}, "JSM_NAMESPACE_SIZE=4", "mpiexec.mpich"},
      {{{"PMI_SIZE", "4"}, {"PMI_RANK", "0"}}, "PMI_SIZE=4", "pass on environment"},
      {{{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "8"}, {"PMIX_RANK", "0"}},
       "PMIX_RANK",
       "srun --mpi=pmi2"},
      {{{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "8"}},
       "SLURM_STEP_NUM_TASKS=4",
       "srun --mpi=pmi2"},
      {{{"FLUX_JOB_SIZE", "4"}}, "FLUX_JOB_SIZE=4", "pmi=simple"},
      {{{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}, "SLURM_NTASKS=8", "mpiexec.mpich ./program"},
  };
  for (const Wrong& wrong : all) {
    const std::string line = launcher_complaint(1, variables(wrong.environment));
    CAPTURE(wrong.sign);
    CAPTURE(line);
    CHECK(holds(line, wrong.sign));
    CHECK(holds(line, wrong.remedy));
    CHECK_FALSE(holds(line, "\n"));
    CHECK(launcher_complaint(4, variables(wrong.environment)).empty());
  }
}

TEST_CASE("launcher: a right start of one rank, and all but the first process, say nothing") {
  const Environment right[] = {
      {},
      {{"SLURM_NTASKS", "1"}},
      {{"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"PMI_SIZE", "1"}},
      {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}},
      {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "1"}},
  };
  for (const Environment& environment : right) {
    CHECK(launcher_complaint(1, variables(environment)) == "");
  }
}

TEST_CASE("launcher: GPUs that Slurm hides") {
  Environment hidden = {
      {"SLURM_GPUS_ON_NODE", "4"},
      {"CUDA_VISIBLE_DEVICES", "2"},
      {"SLURMD_TRES_BIND", "gpu:per_task:1"}};
  const std::string line = gpu_complaint(variables(hidden));
  CHECK(holds(line, "SLURMD_TRES_BIND=gpu:per_task:1 shows each rank 1 of the 4 GPUs"));
  CHECK(holds(line, "--gpu-bind=none"));
  hidden = {{"SLURM_GPUS_ON_NODE", "8"}, {"ROCR_VISIBLE_DEVICES", "0,1"}};
  CHECK(holds(
      gpu_complaint(variables(hidden)), "ROCR_VISIBLE_DEVICES=0,1 shows each rank 2 of the 8"));
  const Environment right[] = {
      {},
      {{"CUDA_VISIBLE_DEVICES", "0"}},
      {{"SLURM_GPUS_ON_NODE", "4"}},
      {{"SLURM_GPUS_ON_NODE", "4"}, {"CUDA_VISIBLE_DEVICES", "0,1,2,3"}},
      {{"SLURM_GPUS_ON_NODE", "4"}, {"CUDA_VISIBLE_DEVICES", "NoDevFiles"}},
  };
  for (const Environment& environment : right) CHECK(gpu_complaint(variables(environment)) == "");
}

TEST_CASE("launcher: cores that Slurm hides") {
  const Environment job = {{"SLURM_JOB_ID", "1"}, {"SLURM_TASKS_PER_NODE", "1"}};
  Environment bound = job;
  bound["SLURM_CPU_BIND"] = "quiet,map_cpu:0";
  CHECK(holds(
      cpu_complaint(8, 1, 64, variables(bound)),
      "8 ranks of a node share 1 of its 64 cores because of SLURM_CPU_BIND=quiet,map_cpu:0"));
  CHECK(holds(cpu_complaint(8, 1, 64, variables(job)), "SLURM_TASKS_PER_NODE=1; ask"));
  CHECK(cpu_complaint(8, 8, 64, variables(bound)) == "");
  CHECK(cpu_complaint(8, 4, 4, variables(bound)) == "");
  const Environment none;
  CHECK(cpu_complaint(8, 1, 64, variables(none)) == "");
}

TEST_CASE("launcher: ranks on this node as Slurm writes them") {
  struct {
    const char* text;
    const char* node;
    int ranks;
  } const all[] = {{"4", "0", 4},       {"2(x2)", "1", 2},     {"4(x2),3", "2", 3},
                   {"4(x2),3", "0", 4}, {"1,2(x3),5", "3", 2}, {"4", "1", 0},
                   {"", "0", 0}};
  for (const auto& [text, node, ranks] : all) {
    const Environment environment = {{"SLURM_STEP_TASKS_PER_NODE", text}, {"SLURM_NODEID", node}};
    CAPTURE(text);
    CHECK(launched_on_node(variables(environment)) == ranks);
  }
  const Environment hydra = {{"MPI_LOCALNRANKS", "3"}, {"SLURM_STEP_TASKS_PER_NODE", "8"}};
  CHECK(launched_on_node(variables(hydra)) == 3);
}
