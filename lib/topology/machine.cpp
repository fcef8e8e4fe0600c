// SPDX-License-Identifier: MIT
#include "lib/topology/machine.hpp"

#include <fcntl.h>
#include <hwloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>

#include <fmt/format.h>

#include "lib/base/error.hpp"

namespace ferry::core {
namespace {

constexpr std::size_t kProbeBytes = 4096;
constexpr unsigned kChildSeconds = 5;

std::string error_text(const char* step, int error) {
  return fmt::format("{}: {}", step, std::strerror(error));
}

// Pages that parent and child share, or each own a copy of, for the length of a probe.
class Mapping {
 public:
  Mapping(std::size_t bytes, int flags, int fd = -1)
      : base_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0)), bytes_(bytes) {}
  ~Mapping() {
    if (ok()) munmap(base_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] bool ok() const noexcept { return base_ != MAP_FAILED; }
  [[nodiscard]] unsigned char* bytes() const noexcept { return static_cast<unsigned char*>(base_); }

 private:
  void* base_;
  std::size_t bytes_;
};

class FileHandle {
 public:
  explicit FileHandle(int fd) : fd_(fd) {}
  ~FileHandle() {
    if (fd_ >= 0) close(fd_);
  }
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

// Byte i of a probe's data; different data for different tags.
constexpr unsigned char probe_byte(unsigned tag, std::size_t i) {
  return static_cast<unsigned char>(tag * 101u + i * 7u + (i >> 8u) * 13u);
}

void fill(unsigned char* bytes, unsigned tag) {
  for (std::size_t i = 0; i < kProbeBytes; ++i) bytes[i] = probe_byte(tag, i);
}

bool holds(const unsigned char* bytes, unsigned tag) {
  for (std::size_t i = 0; i < kProbeBytes; ++i) {
    if (bytes[i] != probe_byte(tag, i)) return false;
  }
  return true;
}

// What a child reports. `step` names a string literal, which both processes have at one address.
struct Verdict {
  const char* step;
  int error;
  bool done;
};

// Runs body in a child and returns "" or why it failed. The caller may be a process with threads,
// so body may only make system calls. The verdict comes through shared memory and not through the
// exit status, which a SIGCHLD handler of the program may take away from us.
template <class Body>
std::string run_in_child(Body body) {
  const Mapping page(sizeof(Verdict), MAP_SHARED | MAP_ANONYMOUS);
  if (!page.ok()) return error_text("mmap", errno);
  auto* verdict = new (page.bytes()) Verdict{nullptr, 0, false};
  const pid_t child = fork();
  if (child < 0) return error_text("fork", errno);
  if (child == 0) {
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    signal(SIGALRM, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &alarm_only, nullptr);
    alarm(kChildSeconds);
    *verdict = body();
    verdict->done = true;
    _exit(0);
  }
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!verdict->done)
    return fmt::format("the probing process ended early (limit {} s)", kChildSeconds);
  if (verdict->step == nullptr) return {};
  return verdict->error == 0 ? verdict->step : error_text(verdict->step, verdict->error);
}

std::optional<int> read_ptrace_scope() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (file >> scope) return scope;
  return std::nullopt;
}

// The child reads the parent and not the other way round: with Yama's scope 1 a parent may read its
// children, but ranks may not read each other.
std::string probe_cma(const std::optional<int>& scope) {
  const Mapping source(kProbeBytes, MAP_PRIVATE | MAP_ANONYMOUS);
  const Mapping target(kProbeBytes, MAP_PRIVATE | MAP_ANONYMOUS);
  if (!source.ok() || !target.ok()) return error_text("mmap", errno);
  const pid_t parent = getpid();
  // The child inherits a copy of the data and wipes it, so what it then finds is the parent's.
  fill(source.bytes(), 1);
  std::string reason = run_in_child([&]() -> Verdict {
    std::memset(source.bytes(), 0, kProbeBytes);
    const iovec local{target.bytes(), kProbeBytes};
    const iovec remote{source.bytes(), kProbeBytes};
    const ssize_t got = process_vm_readv(parent, &local, 1, &remote, 1, 0);
    if (got < 0) return {"process_vm_readv", errno, false};
    if (got != static_cast<ssize_t>(kProbeBytes)) return {"process_vm_readv: short read", 0, false};
    if (!holds(target.bytes(), 1)) return {"process_vm_readv: wrong data", 0, false};
    return {nullptr, 0, false};
  });
  if (!reason.empty() && scope.value_or(0) > 0) {
    reason += fmt::format(" (Yama ptrace_scope is {})", *scope);
  }
  return reason;
}

std::string probe_memfd() {
  const FileHandle file(memfd_create("ferry-probe", MFD_CLOEXEC));
  if (file.get() < 0) return error_text("memfd_create", errno);
  if (const int error = posix_fallocate(file.get(), 0, kProbeBytes); error != 0) {
    return error_text("posix_fallocate", error);
  }
  const Mapping memory(kProbeBytes, MAP_SHARED, file.get());
  if (!memory.ok()) return error_text("mmap of a memfd", errno);
  fill(memory.bytes(), 2);
  const std::string path = fmt::format("/proc/{}/fd/{}", getpid(), file.get());
  std::string reason = run_in_child([&]() -> Verdict {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return {"open of /proc/<pid>/fd/<n>", errno, false};
    const Mapping seen(kProbeBytes, MAP_SHARED, fd);
    if (!seen.ok()) return {"mmap of /proc/<pid>/fd/<n>", errno, false};
    if (!holds(seen.bytes(), 2)) return {"the mapping shows other data", 0, false};
    fill(seen.bytes(), 3);
    return {nullptr, 0, false};
  });
  if (reason.empty() && !holds(memory.bytes(), 3))
    reason = "writes of the other process are unseen";
  return reason;
}

void probe_shm(MachineFacts& facts) {
  struct statvfs info {};
  if (statvfs("/dev/shm", &info) != 0) {
    facts.shm_reason = error_text("/dev/shm", errno);
    return;
  }
  facts.shm_bytes = std::uint64_t{info.f_frsize} * info.f_blocks;
  facts.shm_free = std::uint64_t{info.f_frsize} * info.f_bavail;
  facts.shm_ok = access("/dev/shm", W_OK | X_OK) == 0;
  if (!facts.shm_ok) facts.shm_reason = error_text("/dev/shm", errno);
}

// The value of a "name:  123 kB" line of /proc/meminfo in bytes; 0 when it is not there.
std::uint64_t meminfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::string unit;
  std::uint64_t value = 0;
  while (file >> key >> value) {
    std::getline(file, unit);
    if (key == name) return value * (unit.find("kB") == std::string::npos ? 1 : 1024);
  }
  return 0;
}

std::string cpu_model_of_proc() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

struct FreeTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using TopologyHandle = std::unique_ptr<hwloc_topology, FreeTopology>;

TopologyHandle load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw Failure(ErrorKind::other, "hwloc_topology_init failed");
  TopologyHandle topology(raw);
  // Disallowed ones too: the report says how much of the machine this process may use.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_cache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_icache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(raw) != 0) {
    throw Failure(ErrorKind::other, error_text("hwloc_topology_load", errno));
  }
  return topology;
}

int count_objects(hwloc_topology_t topology, hwloc_obj_type_t type) {
  return std::max(hwloc_get_nbobjs_by_type(topology, type), 0);
}

int count_allowed(hwloc_topology_t topology) {
  const std::unique_ptr<hwloc_bitmap_s, void (*)(hwloc_bitmap_t)> set(
      hwloc_bitmap_alloc(), hwloc_bitmap_free);
  if (set == nullptr) throw Failure(ErrorKind::no_memory, "hwloc_bitmap_alloc failed");
  if (hwloc_get_cpubind(topology, set.get(), HWLOC_CPUBIND_PROCESS) != 0) {
    return hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topology));
  }
  return hwloc_bitmap_weight(set.get());
}

std::vector<NumaFacts> list_numa(hwloc_topology_t topology) {
  std::vector<NumaFacts> nodes;
  for (int i = 0; i < count_objects(topology, HWLOC_OBJ_NUMANODE); ++i) {
    const hwloc_obj_t node =
        hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
    char* cpus = nullptr;
    if (hwloc_bitmap_list_asprintf(&cpus, node->cpuset) < 0) continue;
    const std::unique_ptr<char, decltype(&std::free)> held(cpus, std::free);
    nodes.push_back({static_cast<int>(node->os_index), cpus, node->attr->numanode.local_memory});
  }
  return nodes;
}

std::vector<CacheFacts> list_caches(hwloc_topology_t topology) {
  constexpr std::array types = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2CACHE,
                                HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE,  HWLOC_OBJ_L5CACHE};
  std::vector<CacheFacts> caches;
  for (const auto type : types) {
    const int count = count_objects(topology, type);
    if (count == 0) continue;
    const auto& cache = hwloc_get_obj_by_type(topology, type, 0)->attr->cache;
    const char* kind = cache.type == HWLOC_OBJ_CACHE_UNIFIED ? "unified"
                       : cache.type == HWLOC_OBJ_CACHE_DATA  ? "data"
                                                             : "instruction";
    caches.push_back({static_cast<int>(cache.depth), kind, cache.size, count});
  }
  return caches;
}

void probe_cpu(MachineFacts& facts) {
  const TopologyHandle topology = load_topology();
  facts.cores_total = count_objects(topology.get(), HWLOC_OBJ_PU);
  facts.cores_allowed = count_allowed(topology.get());
  facts.cores_physical = count_objects(topology.get(), HWLOC_OBJ_CORE);
  facts.packages = count_objects(topology.get(), HWLOC_OBJ_PACKAGE);
  facts.numa_nodes = count_objects(topology.get(), HWLOC_OBJ_NUMANODE);
  facts.numa = list_numa(topology.get());
  facts.caches = list_caches(topology.get());
  const hwloc_obj_t package = hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_PACKAGE, 0);
  const char* model =
      package == nullptr ? nullptr : hwloc_obj_get_info_by_name(package, "CPUModel");
  facts.cpu_model = model != nullptr ? model : cpu_model_of_proc();
}

EngineFacts device_engine(const char* name, const char* device) {
  if (access(device, F_OK) != 0) return {name, false, fmt::format("no {}", device)};
  if (access(device, R_OK | W_OK) != 0) return {name, false, error_text(device, errno)};
  return {name, false, fmt::format("{} is there, but this build has no {} module", device, name)};
}

} // namespace

MachineFacts probe_machine() {
  MachineFacts facts;
  utsname system{};
  uname(&system);
  facts.host = system.nodename;
  facts.kernel = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  probe_cpu(facts);
  facts.memory_bytes = meminfo("MemTotal:");
  facts.memory_available = meminfo("MemAvailable:");
  facts.ptrace_scope = read_ptrace_scope();
  facts.cma_reason = probe_cma(facts.ptrace_scope);
  facts.cma_ok = facts.cma_reason.empty();
  facts.memfd_reason = probe_memfd();
  facts.memfd_ok = facts.memfd_reason.empty();
  probe_shm(facts);
  facts.gpus = find_gpus();
  facts.engines = {
      {"inline", true, {}},
      {"threads", true, {}},
      device_engine("amd", "/dev/kfd"),
      device_engine("nvidia", "/dev/nvidiactl"),
  };
  return facts;
}

} // namespace ferry::core
