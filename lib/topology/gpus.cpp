// SPDX-License-Identifier: MIT
#include "lib/topology/gpus.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace ferry::core {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// Names in a folder, sorted; none where there is no such folder.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// By opening it: control groups forbid that where the file's own rights allow it.
std::string why_closed(const fs::path& file) {
  const int opened = open(file.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (opened < 0) return fmt::format("{}: {}", file.filename().string(), std::strerror(errno));
  close(opened);
  return {};
}

// What follows "name:" in a file of such lines.
std::string field(const fs::path& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name + ":", 0) != 0) continue;
    const auto at = line.find_first_not_of(" \t", name.size() + 1);
    return at == std::string::npos ? std::string() : line.substr(at);
  }
  return {};
}

void look_at_nvidia(const fs::path& root, GpuFacts& gpu) {
  const fs::path file = root / "proc/driver/nvidia/gpus" / gpu.address / "information";
  const std::string minor = field(file, "Device Minor");
  gpu.id = field(file, "GPU UUID");
  gpu.reason = minor.empty() ? "no driver" : why_closed(root / "dev" / ("nvidia" + minor));
}

void look_at_amd(const fs::path& root, const fs::path& device, GpuFacts& gpu) {
  gpu.id = first_line(device / "unique_id");
  gpu.reason = "no driver";
  for (const std::string& name : names_in(device / "drm")) {
    if (name.rfind("renderD", 0) != 0) continue;
    gpu.reason = why_closed(root / "dev/kfd");
    if (gpu.reason.empty()) gpu.reason = why_closed(root / "dev/dri" / name);
  }
}

// Display controllers and processing accelerators.
bool is_gpu(const std::string& pci_class) {
  return pci_class.rfind("0x03", 0) == 0 || pci_class.rfind("0x12", 0) == 0;
}

} // namespace

std::vector<GpuFacts> find_gpus(const std::string& root) {
  std::vector<GpuFacts> gpus;
  const fs::path top = root.empty() ? "/" : root;
  const fs::path bus = top / "sys/bus/pci/devices";
  for (const std::string& address : names_in(bus)) {
    if (!is_gpu(first_line(bus / address / "class"))) continue;
    const std::string vendor = first_line(bus / address / "vendor");
    GpuFacts gpu{"", address, "", ""};
    if (vendor == "0x10de") {
      gpu.vendor = "NVIDIA";
      look_at_nvidia(top, gpu);
    } else if (vendor == "0x1002") {
      gpu.vendor = "AMD";
      look_at_amd(top, bus / address, gpu);
    } else {
      continue;
    }
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::string gpu_line(const std::vector<GpuFacts>& gpus, const LauncherVariable& get) {
  std::vector<std::string> usable;
  for (const GpuFacts& gpu : gpus) {
    if (gpu.reason.empty()) usable.push_back(fmt::format("{} {}", gpu.vendor, gpu.address));
  }
  if (usable.empty()) return "none";
  std::string line = fmt::format("{}", fmt::join(usable, ", "));
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
    if (const char* value = get(name)) line += fmt::format("; {}={}", name, value);
  }
  return line;
}

} // namespace ferry::core
