// SPDX-License-Identifier: MIT
#include <sched.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <nlohmann/json.hpp>

#include <doctest/doctest.h>

#include "lib/topology/machine.hpp"

namespace {

using ferry::core::describe_machine;
using ferry::core::MachineFacts;
using ferry::core::MachineFormat;
using ferry::core::probe_machine;
using nlohmann::json;

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return std::distance(begin(entries), end(entries));
}

// From now on this process and its children get EPERM from one system call, as in a container
// with a strict seccomp profile. It cannot be undone, so it is for forked children only.
bool deny(long call) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

template <class Body>
bool holds_in_child(Body body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

const json& engine(const json& report, const std::string& name) {
  const auto& engines = report.at("engines");
  const auto found = std::find_if(
      engines.begin(), engines.end(), [&](const json& e) { return e.at("name") == name; });
  REQUIRE(found != engines.end());
  return *found;
}

} // namespace

TEST_CASE("cores follow the affinity of the process") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  const MachineFacts all = probe_machine();
  CHECK(all.cores_allowed == CPU_COUNT(&before));
  CHECK(all.cores_total >= all.cores_allowed);
  CHECK(all.cores_total >= all.cores_physical);
  CHECK(all.cores_physical >= 1);
  CHECK(all.packages >= 1);
  CHECK(all.numa_nodes >= 1);

  cpu_set_t one;
  CPU_ZERO(&one);
  int first = 0;
  for (; !CPU_ISSET(first, &before); ++first) {
  }
  CPU_SET(first, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  const MachineFacts pinned = probe_machine();
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(pinned.cores_allowed == 1);
  CHECK(pinned.cores_total == all.cores_total);
}

TEST_CASE("memory and /dev/shm agree with the kernel") {
  const MachineFacts facts = probe_machine();
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  CHECK(facts.memory_bytes == pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  CHECK(facts.memory_available > 0);
  CHECK(facts.memory_available <= facts.memory_bytes);
  struct statvfs info {};
  if (statvfs("/dev/shm", &info) == 0) {
    CHECK(facts.shm_bytes == std::uint64_t{info.f_frsize} * info.f_blocks);
    CHECK(facts.shm_free <= facts.shm_bytes);
  } else {
    CHECK(!facts.shm_ok);
    CHECK(!facts.shm_reason.empty());
  }
}

TEST_CASE("a verdict comes with a reason exactly when it is no") {
  const MachineFacts facts = probe_machine();
  CHECK(facts.cma_ok == facts.cma_reason.empty());
  CHECK(facts.memfd_ok == facts.memfd_reason.empty());
  CHECK(facts.shm_ok == facts.shm_reason.empty());
  REQUIRE(facts.engines.size() == 4);
  for (const auto& e : facts.engines) CHECK(e.available == e.reason.empty());
  CHECK(
      facts.ptrace_scope.has_value() ==
      std::filesystem::exists("/proc/sys/kernel/yama/ptrace_scope"));
}

TEST_CASE("a refused process_vm_readv is reported as such") {
  CHECK(holds_in_child([] {
    if (!deny(SYS_process_vm_readv)) return false;
    const MachineFacts facts = probe_machine();
    return !facts.cma_ok && facts.cma_reason.starts_with("process_vm_readv: Operation not perm");
  }));
}

TEST_CASE("a refused memfd_create is reported as such") {
  CHECK(holds_in_child([] {
    if (!deny(SYS_memfd_create)) return false;
    const MachineFacts facts = probe_machine();
    return !facts.memfd_ok && facts.memfd_reason == "memfd_create: Operation not permitted";
  }));
}

TEST_CASE("a process that ignores SIGCHLD gets the same verdicts") {
  const MachineFacts expected = probe_machine();
  CHECK(holds_in_child([&] {
    std::signal(SIGCHLD, SIG_IGN);
    const MachineFacts facts = probe_machine();
    return facts.cma_reason == expected.cma_reason && facts.memfd_reason == expected.memfd_reason;
  }));
}

TEST_CASE("probing leaves no descriptor and no child") {
  (void)probe_machine();
  const auto before = open_descriptors();
  for (int i = 0; i < 20; ++i) (void)probe_machine();
  CHECK(open_descriptors() == before);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

TEST_CASE("JSON and text tell the same") {
  const json report = json::parse(describe_machine(MachineFormat::json));
  const std::string text = describe_machine(MachineFormat::text);
  const MachineFacts facts = probe_machine();
  CHECK(report.at("host") == facts.host);
  CHECK(report.at("cores_allowed") == facts.cores_allowed);
  CHECK(report.at("cross_memory_attach").at("ok") == facts.cma_ok);
  CHECK(report.at("memfd_sharing").at("ok") == facts.memfd_ok);
  CHECK(report.at("dev_shm").at("bytes") == facts.shm_bytes);
  CHECK(report.at("caches").size() == facts.caches.size());
  CHECK(engine(report, "inline").at("available") == true);
  CHECK(engine(report, "amd").at("available") == false);
  CHECK(text.find(facts.host) != std::string::npos);
  CHECK(text.find(facts.cpu_model) != std::string::npos);
  const std::string amd = engine(report, "amd").at("reason");
  CHECK(text.find("no (" + amd + ")") != std::string::npos);
}

TEST_CASE("the reason for a missing GPU engine names the device") {
  const json report = json::parse(describe_machine(MachineFormat::json));
  const std::string amd = engine(report, "amd").at("reason");
  CHECK(amd.find("/dev/kfd") != std::string::npos);
  if (!std::filesystem::exists("/dev/kfd")) CHECK(amd == "no /dev/kfd");
  const std::string nvidia = engine(report, "nvidia").at("reason");
  CHECK(nvidia.find("/dev/nvidiactl") != std::string::npos);
}
