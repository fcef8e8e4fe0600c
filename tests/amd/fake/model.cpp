// SPDX-License-Identifier: MIT
#include "tests/amd/fake/model.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ferry::test {
namespace {

namespace fs = std::filesystem;

// By hand from public descriptions; MI308X advertises engines that are fused off. A driver of 2024
// and later gives all partitions of a card its bus address, with their number in bits 28 to 31; the
// engines of DPX are counted as it does: 16 by 2, of which 2 are the host's.
constexpr GpuModel kModels[] = {
    {"MI250X", 8, 90010, 0x7408, 2, 3, 8, false, 0, false, 0},
    {"MI300X", 8, 90402, 0x74a1, 2, 14, 8, true, 0, true, 0},
    {"MI308X", 8, 90402, 0x74a2, 2, 6, 8, true, 0xfc, false, 1},
    {"MI355X", 8, 90500, 0x75a0, 2, 14, 8, true, 0, false, 0},
    {"DPX", 8, 90402, 0x74a1, 2, 6, 8, true, 0xfc, false, 0, 2},
    {"CPX", 8, 90402, 0x74a1, 2, 0, 8, false, 0, false, 0},
};

// As the kernel recommends them: the same numbers as in the library, from the same publication.
constexpr int kMap[8][8] = {
    {-1, 14, 12, 2, 4, 8, 10, 6}, {14, -1, 2, 10, 8, 4, 6, 12}, {10, 2, -1, 12, 14, 6, 4, 8},
    {2, 12, 10, -1, 6, 14, 8, 4}, {4, 8, 14, 6, -1, 10, 12, 2}, {8, 4, 6, 14, 12, -1, 2, 10},
    {10, 6, 4, 8, 12, 2, -1, 14}, {6, 12, 8, 4, 2, 10, 14, -1},
};

// Cards are not in the order of their nodes on the board.
int place_of(int index) {
  constexpr int kPlaces[8] = {2, 3, 0, 1, 6, 7, 4, 5};
  return kPlaces[index % 8];
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

std::string line(const char* name, std::uint64_t value) {
  return std::string(name) + " " + std::to_string(value) + "\n";
}

std::uint32_t mask_of(const GpuModel& model, int from, int to) {
  if (!model.per_link) return model.mask;
  return 1u << kMap[place_of(from)][place_of(to)];
}

void write_links(const GpuModel& model, int from, const fs::path& folder) {
  int index = 0;
  write(
      folder / std::to_string(index++) / "properties",
      line("type", 2) + line("node_from", std::uint64_t(kCpuNodes + from)) + line("node_to", 0));
  for (int to = 0; to < model.gpus; ++to) {
    if (to == from) continue;
    write(
        folder / std::to_string(index++) / "properties",
        line("type", 11) + line("node_from", std::uint64_t(kCpuNodes + from)) +
            line("node_to", std::uint64_t(kCpuNodes + to)) + line("flags", 1) +
            line("recommended_sdma_engine_id_mask", mask_of(model, from, to)));
  }
}

void write_gpu(const GpuModel& model, int index, const fs::path& sysfs, const fs::path& folder) {
  const int node = kCpuNodes + index;
  const int card = index / model.partitions;
  const int after = model.gpus / model.partitions - 1 - card; // cards
  const auto part = static_cast<std::uint64_t>(index % model.partitions);
  const std::uint64_t location = static_cast<std::uint64_t>(0x0500 + after * 0x1000) | part << 28;
  write(folder / "gpu_id", std::to_string(gpu_id_of(node)) + "\n");
  write(
      folder / "properties", line("simd_count", 1216) + line("gfx_target_version", model.gfx) +
                                 line("vendor_id", 0x1002) + line("device_id", model.device_id) +
                                 line("location_id", location) +
                                 line("domain", after == 0 ? 1 : 0) +
                                 line("drm_render_minor", std::uint64_t(render_minor_of(node))) +
                                 line("num_sdma_engines", model.host_engines) +
                                 line("num_sdma_xgmi_engines", model.xgmi_engines) +
                                 line("num_sdma_queues_per_engine", model.queues_per_engine));
  write_links(model, index, folder / "io_links");
  if (!model.oam) return;
  const std::string device = "class/drm/renderD" + std::to_string(render_minor_of(node));
  write(sysfs / device / "device/xgmi_physical_id", std::to_string(place_of(card)) + "\n");
}

} // namespace

const GpuModel& gpu_model(const std::string& name) {
  const auto found = std::find_if(
      std::begin(kModels), std::end(kModels), [&](const GpuModel& m) { return name == m.name; });
  if (found == std::end(kModels)) std::abort();
  return *found;
}

std::vector<std::string> gpu_model_names() {
  std::vector<std::string> names;
  for (const GpuModel& model : kModels) names.emplace_back(model.name);
  return names;
}

std::uint32_t recommended_mask(const GpuModel& model, int from, int to) {
  return mask_of(model, from - kCpuNodes, to - kCpuNodes);
}

std::uint32_t gpu_id_of(int node) {
  return 4096u + 37u * static_cast<std::uint32_t>(node);
}

int render_minor_of(int node) {
  return 128 + (node - kCpuNodes) * 8;
}

void write_sysfs(
    const GpuModel& model, const std::string& sysfs, const std::vector<int>& denied_nodes) {
  const fs::path nodes = fs::path(sysfs) / "devices/virtual/kfd/kfd/topology/nodes";
  for (int node = 0; node < kCpuNodes; ++node) {
    write(nodes / std::to_string(node) / "gpu_id", "0\n");
    write(nodes / std::to_string(node) / "properties", line("cpu_cores_count", 64));
  }
  for (int index = 0; index < model.gpus; ++index) {
    const int node = kCpuNodes + index;
    const fs::path folder = nodes / std::to_string(node);
    const bool denied =
        std::find(denied_nodes.begin(), denied_nodes.end(), node) != denied_nodes.end();
    if (denied) {
      write(folder / "gpu_id", "");
      write(folder / "properties", "");
    } else {
      write_gpu(model, index, sysfs, folder);
    }
  }
}

} // namespace ferry::test
