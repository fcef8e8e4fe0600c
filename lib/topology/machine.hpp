// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/topology/gpus.hpp"

namespace ferry::core {

// All caches of one level and kind.
struct CacheFacts {
  int level = 0;
  std::string kind; // data, instruction or unified
  std::uint64_t bytes = 0; // of one cache
  int count = 0;
};

struct NumaFacts {
  int node = 0;
  std::string cpus; // "0-3,8"
  std::uint64_t bytes = 0; // of its memory
};

struct EngineFacts {
  std::string name;
  bool available = false;
  std::string reason; // why not; empty when available
};

// What was found on this machine. Each `*_reason` is empty when its `*_ok` holds and says why
// otherwise.
struct MachineFacts {
  std::string host;
  std::string kernel;
  std::string cpu_model;
  int cores_allowed = 0; // hardware threads this process may run on
  int cores_total = 0; // hardware threads of the machine
  int cores_physical = 0; // cores of the machine, each with one or more hardware threads
  int packages = 0;
  int numa_nodes = 0;
  std::vector<NumaFacts> numa;
  std::vector<CacheFacts> caches;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_available = 0;

  // A process that is no ancestor of this one, as ranks are to each other, read its memory.
  bool cma_ok = false;
  std::string cma_reason;
  std::optional<int> ptrace_scope; // of Yama; empty when the kernel has none

  // Another process mapped a memfd of this one through /proc/<pid>/fd and both saw each other's
  // writes.
  bool memfd_ok = false;
  std::string memfd_reason;

  bool shm_ok = false;
  std::string shm_reason;
  std::uint64_t shm_bytes = 0;
  std::uint64_t shm_free = 0;

  std::vector<GpuFacts> gpus;
  std::vector<EngineFacts> engines;
};

// Probes the machine by doing: two short-lived child processes, one hwloc discovery. Takes
// milliseconds; needs no MPI. Throws Failure when hwloc cannot read the machine; a probe that is
// refused is a fact and no error.
[[nodiscard]] MachineFacts probe_machine();

enum class MachineFormat { text, json };

// A line: host, process, cores it may run on, GPUs it can use.
[[nodiscard]] std::string describe_process();

// probe_machine() for people (lines of "name  value") or for programs (one JSON object).
[[nodiscard]] std::string describe_machine(MachineFormat format);

} // namespace ferry::core
