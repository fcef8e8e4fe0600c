// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>

namespace ferry::core {

// Value of a variable of the environment, or nullptr when it is missing.
using LauncherVariable = std::function<const char*(const char* name)>;

// What follows are lines for people, empty when all is well. Each names the variable that gives a
// wrong start away and the right command.

// Why a world of `world_size` ranks is not what the launcher says it started: MPI programs under a
// launcher that speaks another protocol each become rank 0 of 1, without an error. Of those that a
// launcher numbers, only the first says so.
[[nodiscard]] std::string launcher_complaint(int world_size, const LauncherVariable& get);

// Slurm shows this rank fewer GPUs than its job has on the node, so that it cannot reach those of
// the other ranks.
[[nodiscard]] std::string gpu_complaint(const LauncherVariable& get);

// Slurm lets the `ranks` ranks of a node run on `cores` of its `cores_total` cores, fewer than they
// are.
[[nodiscard]] std::string cpu_complaint(
    int ranks, int cores, int cores_total, const LauncherVariable& get);

// Ranks on this node as the launcher says, 0 when it does not.
[[nodiscard]] int launched_on_node(const LauncherVariable& get);

// Reads the environment of this process.
[[nodiscard]] const char* launcher_variable(const char* name);

} // namespace ferry::core
