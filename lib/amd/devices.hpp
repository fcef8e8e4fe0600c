// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "lib/amd/gpu_faults.hpp"
#include "lib/amd/ipc_cache.hpp"
#include "lib/amd/kernel_device.hpp"
#include "lib/amd/kfd_driver.hpp"
#include "lib/amd/queue_pool.hpp"
#include "lib/amd/runtime.hpp"
#include "lib/amd/system.hpp"
#include "lib/amd/topology.hpp"

namespace ferry::amd {

// A provider that this machine has, or why not.
struct QueueSource {
  std::unique_ptr<QueueProvider> provider;
  std::unique_ptr<QueuePool> pool;
  std::string missing;
};

// The GPUs of this process and all that plans share.
struct Devices {
  // Throws Failure when there is no GPU that could be used.
  Devices(System& system, const HsaApi& hsa, const HipApi& hip);

  System& system;
  Runtime runtime; // first: who acquires the address space of a GPU later has to share it
  GpuFaults faults;
  Topology topology;
  IpcCache cache;
  KernelDevices kernels;
  std::unique_ptr<KfdDriver> driver;
  QueueSource kfd;
  QueueSource hsa;

  // The GPU with this node number. Throws Failure.
  [[nodiscard]] const Gpu& gpu(int node) const;
};

} // namespace ferry::amd
