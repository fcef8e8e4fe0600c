// SPDX-License-Identifier: MIT
#include "lib/amd/topology.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>

namespace ferry::amd {
namespace {

namespace fs = std::filesystem;
using Properties = std::map<std::string, std::uint64_t>;

// Lines "name value". Empty when the file cannot be read.
Properties read_properties(const fs::path& file) {
  Properties properties;
  std::ifstream in(file);
  std::string name;
  std::uint64_t value = 0;
  for (; in >> name >> value;) properties[name] = value;
  return properties;
}

std::uint32_t number(const Properties& properties, const char* name) {
  const auto found = properties.find(name);
  return found == properties.end() ? 0 : static_cast<std::uint32_t>(found->second);
}

std::optional<int> read_int(const fs::path& file) {
  std::ifstream in(file);
  int value = 0;
  return in >> value ? std::optional<int>(value) : std::nullopt;
}

// The numbered folders below `folder`, in order.
std::vector<int> numbered(const fs::path& folder) {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    int value = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), value);
    if (wrong == std::errc{} && end == name.data() + name.size()) found.push_back(value);
  }
  std::sort(found.begin(), found.end());
  return found;
}

void read_links(Gpu& gpu, const fs::path& folder) {
  for (const int index : numbered(folder)) {
    const Properties p = read_properties(folder / std::to_string(index) / "properties");
    if (p.empty()) continue;
    gpu.links.push_back(
        {static_cast<int>(number(p, "node_to")), number(p, "type"), number(p, "flags"),
         number(p, "recommended_sdma_engine_id_mask")});
  }
}

Gpu read_gpu(int node, std::uint32_t gpu_id, const fs::path& folder, const Properties& p) {
  Gpu gpu;
  gpu.node = node;
  gpu.gpu_id = gpu_id;
  gpu.gfx = number(p, "gfx_target_version");
  gpu.device_id = number(p, "device_id");
  gpu.domain = number(p, "domain");
  gpu.location = number(p, "location_id");
  gpu.render_minor = static_cast<int>(number(p, "drm_render_minor"));
  gpu.host_engines = number(p, "num_sdma_engines");
  gpu.xgmi_engines = number(p, "num_sdma_xgmi_engines");
  gpu.queues_per_engine = number(p, "num_sdma_queues_per_engine");
  read_links(gpu, folder / "io_links");
  read_links(gpu, folder / "p2p_links");
  return gpu;
}

} // namespace

// A direct link is listed before a peer-to-peer path over it, and is preferred.
const Link* Gpu::link_to(int to) const {
  const auto found =
      std::find_if(links.begin(), links.end(), [to](const Link& link) { return link.to == to; });
  return found == links.end() ? nullptr : &*found;
}

std::string Gpu::bus_address() const {
  return fmt::format(
      "{:04x}:{:02x}:{:02x}.{}", domain, location >> 8 & 0xff, location >> 3 & 0x1f, location & 7);
}

std::string Gpu::name() const {
  const std::string part = shares_address ? fmt::format(" partition {}", location >> 28) : "";
  return fmt::format("GPU {}{} (node {}, {})", bus_address(), part, node, gfx_name(gfx));
}

const Gpu* Topology::by_node(int node) const {
  const auto found =
      std::find_if(gpus.begin(), gpus.end(), [node](const Gpu& gpu) { return gpu.node == node; });
  return found == gpus.end() ? nullptr : &*found;
}

const Gpu* Topology::by_location(std::uint32_t domain, std::uint32_t location) const {
  const Gpu* only = nullptr;
  for (const Gpu& gpu : gpus) {
    if (gpu.domain != domain || gpu.location != location) continue;
    if (only != nullptr) return nullptr;
    only = &gpu;
  }
  return only;
}

Topology read_topology(const std::string& sysfs) {
  Topology topology;
  const fs::path root = fs::path(sysfs) / "devices/virtual/kfd/kfd/topology/nodes";
  for (const int node : numbered(root)) {
    const fs::path folder = root / std::to_string(node);
    std::uint32_t gpu_id = 0;
    std::ifstream(folder / "gpu_id") >> gpu_id;
    const Properties p = read_properties(folder / "properties");
    if (p.empty()) { // a cgroup that denies the device makes the file unreadable
      topology.hidden.push_back(fmt::format("node {} may not be read", node));
      continue;
    }
    if (gpu_id == 0) continue; // a CPU
    Gpu gpu = read_gpu(node, gpu_id, folder, p);
    const std::string card = fmt::format("class/drm/renderD{}/device", gpu.render_minor);
    gpu.oam = read_int(fs::path(sysfs) / card / "xgmi_physical_id").value_or(kNoOam);
    topology.gpus.push_back(std::move(gpu));
  }
  for (Gpu& gpu : topology.gpus) {
    gpu.shares_address =
        1 < std::count_if(topology.gpus.begin(), topology.gpus.end(), [&](const Gpu& other) {
          return other.bus_address() == gpu.bus_address();
        });
  }
  return topology;
}

std::optional<device::Generation> generation_of(std::uint32_t gfx) {
  using device::Generation;
  switch (gfx) {
    case 90010:
      return Generation::gfx90a;
    case 90402:
      return Generation::gfx942;
    case 90500:
      return Generation::gfx950;
    case 120500:
      return Generation::gfx1250;
    default:
      return std::nullopt;
  }
}

std::string gfx_name(std::uint32_t gfx) {
  return fmt::format("gfx{}{}{:x}", gfx / 10000, gfx / 100 % 100, gfx % 100);
}

} // namespace ferry::amd
