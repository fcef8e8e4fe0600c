// SPDX-License-Identifier: MIT
#pragma once

// GPUs that do not exist: what the kernel would tell about eight MI300X and their like, written as
// the folders in which it tells it.

#include <cstdint>
#include <string>
#include <vector>

namespace ferry::test {

struct GpuModel {
  const char* name;
  int gpus; // nodes, partitions included
  std::uint32_t gfx;
  std::uint32_t device_id;
  std::uint32_t host_engines;
  std::uint32_t xgmi_engines;
  std::uint32_t queues_per_engine;
  bool oam; // the board tells the places of the cards
  std::uint32_t mask; // recommended engines of each link; 0: none, unless per_link
  bool per_link; // the mask has one engine, from the map of the board
  std::uint32_t odd_engines_hang;
  int partitions = 1; // of a card, which share its bus address
};

// "MI250X", "MI300X", "MI308X", "MI355X", "DPX", "CPX"; aborts the test for any other name.
[[nodiscard]] const GpuModel& gpu_model(const std::string& name);
[[nodiscard]] std::vector<std::string> gpu_model_names();

// Two processors, then the GPUs.
inline constexpr int kCpuNodes = 2;
[[nodiscard]] std::uint32_t gpu_id_of(int node);
[[nodiscard]] int render_minor_of(int node);

// What the driver recommends for copies between two nodes; 0: nothing.
[[nodiscard]] std::uint32_t recommended_mask(const GpuModel& model, int from, int to);

// Writes the folders below `sysfs`, which must not exist. Cards that a cgroup denies have
// unreadable files.
void write_sysfs(
    const GpuModel& model, const std::string& sysfs, const std::vector<int>& denied_nodes = {});

} // namespace ferry::test
