// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/generation.hpp"

namespace ferry::amd {

inline constexpr int kNoOam = -1;

// A way from one node to another, as the kernel lists it.
struct Link {
  int to = 0; // node
  std::uint32_t type = 0;
  std::uint32_t flags = 0;
  std::uint32_t engines = 0; // recommended, one bit each; 0: the kernel does not say

  static constexpr std::uint32_t kXgmi = 11;
};

// A GPU, or a partition of one. The node number is the kernel's and the same for all processes,
// whatever a runtime hides or renumbers; the bus address says which card it is.
struct Gpu {
  int node = 0;
  std::uint32_t gpu_id = 0;
  std::uint32_t gfx = 0; // gfx_target_version, 90402 for gfx942
  std::uint32_t device_id = 0;
  std::uint32_t domain = 0;
  std::uint32_t location = 0; // partition << 28 | bus << 8 | device << 3 | function
  bool shares_address = false; // with other partitions of its card
  int render_minor = 0;
  std::uint32_t host_engines = 0; // engines 0 .. host_engines - 1 are meant for host traffic
  std::uint32_t xgmi_engines = 0; // those behind them
  std::uint32_t queues_per_engine = 0;
  int oam = kNoOam; // place on the board
  std::vector<Link> links;

  [[nodiscard]] std::uint32_t engines() const { return host_engines + xgmi_engines; }
  [[nodiscard]] const Link* link_to(int node) const;
  [[nodiscard]] std::string bus_address() const; // "0000:c1:00.0", of the card
  [[nodiscard]] std::string name() const; // "GPU 0000:c1:00.0 (node 2, gfx942)"
};

struct Topology {
  std::vector<Gpu> gpus; // by node
  std::vector<std::string> hidden; // nodes that this process may not read, and why

  [[nodiscard]] const Gpu* by_node(int node) const;
  // By bus address, where only one node has it.
  [[nodiscard]] const Gpu* by_location(std::uint32_t domain, std::uint32_t location) const;
};

// What the kernel tells below `sysfs`. Nothing is there when the driver is not.
[[nodiscard]] Topology read_topology(const std::string& sysfs);

// The packets that the engines of this GPU take, if Ferry knows them.
[[nodiscard]] std::optional<device::Generation> generation_of(std::uint32_t gfx);
[[nodiscard]] std::string gfx_name(std::uint32_t gfx);

} // namespace ferry::amd
