// SPDX-License-Identifier: MIT
#include "lib/topology/gpus.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_folder.hpp"

using namespace ferry::core;

namespace {

void put(const std::string& file, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  std::ofstream(file) << text;
}

void put_device(
    const std::string& root, const char* address, const char* kind, const char* vendor) {
  const std::string device = root + "/sys/bus/pci/devices/" + address;
  put(device + "/class", std::string(kind) + "\n");
  put(device + "/vendor", std::string(vendor) + "\n");
}

} // namespace

TEST_CASE("gpus: by address, with what the process may open") {
  const ferry::test::TemporaryFolder folder;
  const std::string root = folder.path();
  put_device(root, "0000:00:02.0", "0x030000", "0x1234"); // a screen
  put_device(root, "0000:00:03.0", "0x020000", "0x10de"); // a network card
  put_device(root, "0000:c1:00.0", "0x030200", "0x10de");
  put_device(root, "0000:0a:00.0", "0x030200", "0x10de");
  put_device(root, "0001:05:00.0", "0x120000", "0x1002");
  put_device(root, "0001:06:00.0", "0x120000", "0x1002");
  const std::string information =
      "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-f084\nDevice Minor: \t ";
  put(root + "/proc/driver/nvidia/gpus/0000:0a:00.0/information", information + "0\n");
  put(root + "/proc/driver/nvidia/gpus/0000:c1:00.0/information", information + "1\n");
  put(root + "/dev/nvidia1", "");
  put(root + "/dev/kfd", "");
  put(root + "/dev/dri/renderD129", "");
  put(root + "/sys/bus/pci/devices/0001:05:00.0/drm/card1/x", "");
  put(root + "/sys/bus/pci/devices/0001:05:00.0/drm/renderD129/x", "");
  put(root + "/sys/bus/pci/devices/0001:05:00.0/unique_id", "a1b2\n");
  const std::vector<GpuFacts> gpus = find_gpus(root);
  REQUIRE(gpus.size() == 4);
  CHECK(gpus[0].address == "0000:0a:00.0");
  CHECK(gpus[0].reason == "nvidia0: No such file or directory");
  CHECK(gpus[1].vendor == "NVIDIA");
  CHECK(gpus[1].id == "GPU-f084");
  CHECK(gpus[1].reason.empty());
  CHECK(gpus[2].vendor == "AMD");
  CHECK(gpus[2].id == "a1b2");
  CHECK(gpus[2].reason.empty());
  CHECK(gpus[3].reason == "no driver");
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  CHECK(gpu_line(gpus, nothing) == "NVIDIA 0000:c1:00.0, AMD 0001:05:00.0");
  const auto hidden = [](const char* name) -> const char* {
    return std::string(name) == "CUDA_VISIBLE_DEVICES" ? "0" : nullptr;
  };
  CHECK(gpu_line(gpus, hidden) == "NVIDIA 0000:c1:00.0, AMD 0001:05:00.0; CUDA_VISIBLE_DEVICES=0");
}

TEST_CASE("gpus: a machine without any") {
  const ferry::test::TemporaryFolder folder;
  CHECK(find_gpus(folder.path()).empty());
  CHECK(gpu_line({}, [](const char*) -> const char* { return "0"; }) == "none");
}
