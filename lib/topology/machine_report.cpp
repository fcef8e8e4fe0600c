// SPDX-License-Identifier: MIT
#include <sched.h>
#include <unistd.h>
#include <array>
#include <climits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/topology/machine.hpp"

namespace ferry::core {
namespace {

using Json = nlohmann::ordered_json;

std::string yes_or(bool ok, const std::string& reason) {
  return ok ? "yes" : fmt::format("no ({})", reason);
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{:.4g} {}", value, units[unit]);
}

std::string line(const std::string& name, const std::string& value) {
  return fmt::format("{:<22}{}\n", name, value);
}

std::string cpu_lines(const MachineFacts& facts) {
  std::string text = line("cpu", facts.cpu_model);
  text += line(
      "cores",
      fmt::format(
          "{} of {} allowed ({} physical, {} package(s), {} NUMA node(s))", facts.cores_allowed,
          facts.cores_total, facts.cores_physical, facts.packages, facts.numa_nodes));
  for (const auto& node : facts.numa) {
    text += line(
        fmt::format("NUMA node {}", node.node),
        fmt::format("CPUs {}, {}", node.cpus, human_bytes(node.bytes)));
  }
  for (const auto& cache : facts.caches) {
    text += line(
        fmt::format("cache L{} {}", cache.level, cache.kind),
        fmt::format("{} x {}", cache.count, human_bytes(cache.bytes)));
  }
  return text;
}

std::string memory_lines(const MachineFacts& facts) {
  std::string text = line(
      "memory", fmt::format(
                    "{}, {} available", human_bytes(facts.memory_bytes),
                    human_bytes(facts.memory_available)));
  text += line("cross-memory attach", yes_or(facts.cma_ok, facts.cma_reason));
  text += line("memfd sharing", yes_or(facts.memfd_ok, facts.memfd_reason));
  const std::string space =
      fmt::format("{}, {} free", human_bytes(facts.shm_bytes), human_bytes(facts.shm_free));
  return text + line("/dev/shm", facts.shm_ok ? space : yes_or(false, facts.shm_reason));
}

std::string gpu_lines(const MachineFacts& facts) {
  if (facts.gpus.empty()) return line("GPUs", "none");
  std::string text;
  for (const auto& gpu : facts.gpus) {
    const std::string id = gpu.id.empty() ? std::string() : ", " + gpu.id;
    const std::string why = gpu.reason.empty() ? std::string() : ", not usable: " + gpu.reason;
    text += line("GPU " + gpu.address, gpu.vendor + id + why);
  }
  return text;
}

std::string to_text(const MachineFacts& facts) {
  std::string text = line("host", facts.host) + line("kernel", facts.kernel);
  text += cpu_lines(facts) + memory_lines(facts) + gpu_lines(facts);
  for (const auto& engine : facts.engines) {
    text += line("engine " + engine.name, yes_or(engine.available, engine.reason));
  }
  return text;
}

Json caches_json(const MachineFacts& facts) {
  Json list = Json::array();
  for (const auto& cache : facts.caches) {
    list.push_back(
        {{"level", cache.level},
         {"kind", cache.kind},
         {"bytes", cache.bytes},
         {"count", cache.count}});
  }
  return list;
}

Json numa_json(const MachineFacts& facts) {
  Json list = Json::array();
  for (const auto& node : facts.numa) {
    list.push_back({{"node", node.node}, {"cpus", node.cpus}, {"bytes", node.bytes}});
  }
  return list;
}

Json gpus_json(const MachineFacts& facts) {
  Json list = Json::array();
  for (const auto& gpu : facts.gpus) {
    list.push_back(
        {{"vendor", gpu.vendor},
         {"address", gpu.address},
         {"id", gpu.id},
         {"usable", gpu.reason.empty()},
         {"reason", gpu.reason}});
  }
  return list;
}

Json engines_json(const MachineFacts& facts) {
  Json list = Json::array();
  for (const auto& engine : facts.engines) {
    list.push_back(
        {{"name", engine.name}, {"available", engine.available}, {"reason", engine.reason}});
  }
  return list;
}

Json to_json(const MachineFacts& facts) {
  const Json scope = facts.ptrace_scope ? Json(*facts.ptrace_scope) : Json(nullptr);
  return {
      {"host", facts.host},
      {"kernel", facts.kernel},
      {"cpu_model", facts.cpu_model},
      {"cores_allowed", facts.cores_allowed},
      {"cores_total", facts.cores_total},
      {"cores_physical", facts.cores_physical},
      {"packages", facts.packages},
      {"numa_nodes", facts.numa_nodes},
      {"numa", numa_json(facts)},
      {"caches", caches_json(facts)},
      {"memory", {{"bytes", facts.memory_bytes}, {"available", facts.memory_available}}},
      {"cross_memory_attach",
       {{"ok", facts.cma_ok}, {"reason", facts.cma_reason}, {"ptrace_scope", scope}}},
      {"memfd_sharing", {{"ok", facts.memfd_ok}, {"reason", facts.memfd_reason}}},
      {"dev_shm",
       {{"ok", facts.shm_ok},
        {"reason", facts.shm_reason},
        {"bytes", facts.shm_bytes},
        {"free", facts.shm_free}}},
      {"gpus", gpus_json(facts)},
      {"engines", engines_json(facts)},
  };
}

} // namespace

std::string describe_process() {
  std::array<char, HOST_NAME_MAX + 1> host{};
  gethostname(host.data(), HOST_NAME_MAX);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  return fmt::format(
      "{}, process {}, {} of {} cores, GPUs: {}", host.data(), getpid(), CPU_COUNT(&cores),
      sysconf(_SC_NPROCESSORS_ONLN), gpu_line(find_gpus(), launcher_variable));
}

std::string describe_machine(MachineFormat format) {
  const MachineFacts facts = probe_machine();
  if (format == MachineFormat::text) return to_text(facts);
  // A host name is bytes to the kernel; what is no UTF-8 in it must not cost the whole report.
  return to_json(facts).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

} // namespace ferry::core
