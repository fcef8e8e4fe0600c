// SPDX-License-Identifier: MIT
// Allocations of the virtual memory calls between processes, with a driver that records what it is
// asked and fails where it is told to.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.hpp"
#include "lib/nvidia/shareable.hpp"

namespace ferry::test {

namespace {

using nvidia::Descriptor;
using nvidia::Driver;

constexpr std::uint64_t kBase = 0x7000000000;
constexpr std::uint64_t kPlace = 0x5000000000;
constexpr std::uint64_t kBytes = std::uint64_t{2} << 20;
constexpr CUmemGenericAllocationHandle kHandle = 77;
constexpr char kContent[] = "the allocation";

struct Record {
  std::vector<std::string> calls;
  std::string fails; // the call that does
  int exported = -1; // what an export gives
};

Record& record() {
  static Record the_record;
  return the_record;
}

CUresult note(const char* call, std::string text) {
  record().calls.push_back(std::move(text));
  return record().fails == call ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

// "" where the descriptor does not lead to what was exported.
std::string content_of(int fd) {
  char text[sizeof kContent] = "";
  return pread(fd, text, sizeof text, 0) == static_cast<ssize_t>(sizeof text) ? text : "";
}

Driver recording_driver() {
  Driver d;
  d.retain_handle = [](CUmemGenericAllocationHandle* handle, void* address) {
    *handle = kHandle;
    return note("retain", fmt::format("retain {}", address));
  };
  d.export_handle = [](void* fd, CUmemGenericAllocationHandle handle,
                       CUmemAllocationHandleType type, unsigned long long /*flags*/) {
    const CUresult result = note("export", fmt::format("export {} as {}", handle, int(type)));
    if (result == CUDA_SUCCESS) *static_cast<int*>(fd) = dup(record().exported);
    return result;
  };
  d.import_handle = [](CUmemGenericAllocationHandle* handle, void* fd,
                       CUmemAllocationHandleType type) {
    *handle = kHandle;
    const int number = static_cast<int>(reinterpret_cast<std::intptr_t>(fd));
    return note("import", fmt::format("import '{}' as {}", content_of(number), int(type)));
  };
  d.reserve = [](CUdeviceptr* at, std::size_t bytes, std::size_t, CUdeviceptr, unsigned long long) {
    *at = kPlace;
    return note("reserve", fmt::format("reserve {}", bytes));
  };
  d.map = [](CUdeviceptr at, std::size_t bytes, std::size_t offset,
             CUmemGenericAllocationHandle handle, unsigned long long) {
    return note("map", fmt::format("map {:#x} {} {} {}", at, bytes, offset, handle));
  };
  d.set_access = [](CUdeviceptr at, std::size_t bytes, const CUmemAccessDesc* access,
                    std::size_t number) {
    return note(
        "access",
        fmt::format(
            "access {:#x} {} for {}{}", at, bytes, access->location.id,
            number == 1 && access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? "" : "?"));
  };
  d.unmap = [](CUdeviceptr at, std::size_t bytes) {
    return note("unmap", fmt::format("unmap {:#x} {}", at, bytes));
  };
  d.unreserve = [](CUdeviceptr at, std::size_t bytes) {
    return note("unreserve", fmt::format("unreserve {:#x} {}", at, bytes));
  };
  d.release = [](CUmemGenericAllocationHandle handle) {
    return note("release", fmt::format("release {}", handle));
  };
  return d;
}

Descriptor make_memory() {
  Descriptor memory(memfd_create("shareable", MFD_CLOEXEC));
  REQUIRE(pwrite(memory.get(), kContent, sizeof kContent, 0) == sizeof kContent);
  return memory;
}

// A process that holds the descriptor until it is ended.
class Holder {
 public:
  Holder() {
    const Descriptor memory = make_memory();
    fd_ = memory.get();
    pid_ = fork();
    if (pid_ != 0) return;
    for (int i = 0; i < 100; ++i) usleep(100'000);
    _exit(0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] int fd() const { return fd_; } // in that process only

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
};

int open_descriptors() {
  int open = 0;
  for (int fd = 0; fd < 256; ++fd) open += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return open;
}

using Lines = std::vector<std::string>;
const Lines kMapped = {
    "import 'the allocation' as 1", "reserve 2097152", "map 0x5000000000 2097152 0 77",
    "access 0x5000000000 2097152 for 3"};

Lines with(Lines lines, std::size_t kept, const Lines& more) {
  lines.resize(kept);
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

} // namespace

TEST_CASE("shareable: an export gives one descriptor and keeps no handle") {
  const Descriptor memory = make_memory();
  record() = {{}, "", memory.get()};
  const int before = open_descriptors();
  {
    const Descriptor fd = nvidia::export_shareable(recording_driver(), kBase);
    CHECK(content_of(fd.get()) == kContent);
    CHECK(record().calls == Lines{"retain 0x7000000000", "export 77 as 1", "release 77"});
  }
  CHECK(open_descriptors() == before);
  for (const char* call : {"retain", "export"}) {
    record() = {{}, call, memory.get()};
    CHECK_THROWS_AS(
        static_cast<void>(nvidia::export_shareable(recording_driver(), kBase)), core::Failure);
    const bool retained = record().fails == "export";
    CHECK(record().calls.back() == (retained ? "release 77" : "retain 0x7000000000"));
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("shareable: what another process exported is mapped for the device") {
  const Holder holder;
  record() = {};
  const int before = open_descriptors();
  const Driver driver = recording_driver();
  CHECK(nvidia::map_shareable(driver, holder.pid(), holder.fd(), kBytes, 3) == kPlace);
  CHECK(record().calls == with(kMapped, 4, {"release 77"}));
  CHECK(open_descriptors() == before);
  record() = {};
  nvidia::unmap_shareable(driver, kPlace, kBytes);
  CHECK(record().calls == Lines{"unmap 0x5000000000 2097152", "unreserve 0x5000000000 2097152"});
}

TEST_CASE("shareable: a step that fails leaves nothing behind") {
  const Holder holder;
  const Driver driver = recording_driver();
  const int before = open_descriptors();
  const std::pair<const char*, Lines> cases[] = {
      {"import", with(kMapped, 1, {})},
      {"reserve", with(kMapped, 2, {"release 77"})},
      {"map", with(kMapped, 3, {"unreserve 0x5000000000 2097152", "release 77"})},
      {"access",
       with(
           kMapped, 4,
           {"unmap 0x5000000000 2097152", "unreserve 0x5000000000 2097152", "release 77"})}};
  for (const auto& [call, lines] : cases) {
    record() = {{}, call, -1};
    CHECK_THROWS_AS(
        static_cast<void>(nvidia::map_shareable(driver, holder.pid(), holder.fd(), kBytes, 3)),
        core::Failure);
    CHECK(record().calls == lines);
    CHECK(open_descriptors() == before);
  }
}

TEST_CASE("shareable: a descriptor that cannot be had is told with a remedy") {
  record() = {};
  std::string cause;
  std::string remedy;
  try {
    static_cast<void>(nvidia::map_shareable(recording_driver(), getpid(), 9999, kBytes, 3));
  } catch (const core::Failure& failure) {
    cause = failure.status().cause;
    remedy = failure.status().remedy;
  }
  CHECK(cause.find(fmt::format("the descriptor of process {}", getpid())) == 0);
  CHECK(remedy.find("pidfd_getfd") != std::string::npos);
  CHECK(record().calls.empty());
}

} // namespace ferry::test
