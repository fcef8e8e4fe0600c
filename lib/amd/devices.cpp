// SPDX-License-Identifier: MIT
#include "lib/amd/devices.hpp"

#include <fmt/format.h>
#include <utility>

#include "lib/amd/hsa_queues.hpp"
#include "lib/amd/kfd_queues.hpp"
#include "lib/base/error.hpp"

namespace ferry::amd {
namespace {

void provide(QueueSource& source, std::unique_ptr<QueueProvider> provider) {
  source.provider = std::move(provider);
  source.pool = std::make_unique<QueuePool>(*source.provider);
}

} // namespace

Devices::Devices(System& at, const HsaApi& hsa_api, const HipApi& hip)
    : system(at),
      runtime(hsa_api, hip),
      faults(runtime),
      topology(read_topology(at.sysfs())),
      cache(runtime),
      kernels(hip.modules) {
  if (runtime.gpus() == 0) {
    throw core::Failure(core::ErrorKind::other, "the ROCm runtime shows no GPU");
  }
  provide(hsa, make_hsa_queues(runtime));
  try {
    driver = std::make_unique<KfdDriver>(system);
    provide(kfd, make_kfd_queues(*driver));
  } catch (const core::Failure& failure) {
    kfd.missing = failure.status().cause;
  }
}

const Gpu& Devices::gpu(int node) const {
  const Gpu* const found = topology.by_node(node);
  if (found != nullptr) return *found;
  throw core::Failure(
      core::ErrorKind::other, fmt::format("node {} is not in the topology of the kernel", node),
      "make /sys/devices/virtual/kfd readable in this container");
}

} // namespace ferry::amd
