// SPDX-License-Identifier: MIT
// ferry_arm and ferry_device_team_* of ferry.h, with a module that no GPU is needed for: what they
// refuse, and in which order starts run that a kernel makes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <ferry/ferry.h>

#include "device/start.hpp"
#include "device/team.hpp"
#include "lib/exec/device_memory.hpp"
#include "support/communicators.hpp"
#include "support/errors.hpp"
#include "support/fake_gpu.hpp"

namespace ferry::test {
namespace {

FakeGpu& gpu() {
  static FakeGpu& the_gpu = *[] {
    auto* fake = new FakeGpu; // lives as long as the process
    fake->set_makes_plans(true);
    core::install_device_backend(core::DeviceKind::nvidia, *fake);
    return fake;
  }();
  return the_gpu;
}

constexpr int kWords = 33; // of a block

// An alltoall on device addresses; host() is what lies behind them.
class Fixture {
 public:
  explicit Fixture(const Comm& comm) : comm_(comm), send_(words(comm)), recv_(words(comm)) {
    void* const from = gpu().lend(send_.data(), send_.size() * sizeof send_[0]);
    void* const to = gpu().lend(recv_.data(), recv_.size() * sizeof recv_[0]);
    REQUIRE(
        ferry_alltoall_init(
            from, kWords, MPI_INT32_T, to, kWords, MPI_INT32_T, comm.get(), MPI_INFO_NULL,
            &request_) == MPI_SUCCESS);
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;
  ~Fixture() { ferry_request_free(&request_); }

  [[nodiscard]] ferry_request& request() { return request_; }
  void fill(int round) {
    for (std::size_t i = 0; i < send_.size(); ++i) {
      send_[i] =
          value(round, comm_.rank(), static_cast<int>(i) / kWords, static_cast<int>(i) % kWords);
    }
    std::fill(recv_.begin(), recv_.end(), -1);
  }
  [[nodiscard]] int wrong(int round) const {
    int wrong = 0;
    for (std::size_t i = 0; i < recv_.size(); ++i) {
      const int sender = static_cast<int>(i) / kWords;
      if (recv_[i] != value(round, sender, comm_.rank(), static_cast<int>(i) % kWords)) ++wrong;
    }
    return wrong;
  }

 private:
  static std::size_t words(const Comm& comm) {
    return static_cast<std::size_t>(comm.size() * kWords);
  }
  static std::int32_t value(int round, int sender, int receiver, int at) {
    return ((round * 64 + sender) * 64 + receiver) * 64 + at;
  }

  const Comm& comm_;
  std::vector<std::int32_t> send_;
  std::vector<std::int32_t> recv_;
  ferry_request request_ = FERRY_REQUEST_NULL;
};

// What a kernel does while it waits: engines go on.
struct Engines {
  int left = 1 << 20;
  bool operator()() {
    gpu().look();
    sched_yield();
    return --left > 0;
  }
};

// Functions without a communicator name no rank.
void check_refused(
    int code, int error_class, const std::string& function,
    std::initializer_list<const char*> words) {
  CHECK(class_of(code) == error_class);
  const std::string text = ferry_error_text();
  CHECK_MESSAGE(text.find(function + ": ") == 0, text);
  for (const char* word : words) CHECK_MESSAGE(text.find(word) != std::string::npos, text);
}

} // namespace

TEST_CASE("arm: starts of a kernel and of the host, in order, with data that change") {
  static_cast<void>(gpu());
  const Comm comm = duplicate();
  Fixture call(comm);
  int round = 0;
  for (int lap = 0; lap < 20; ++lap) {
    device::StartHandle handle;
    REQUIRE(ferry_arm(call.request(), 5, &handle, sizeof handle) == MPI_SUCCESS);
    REQUIRE(handle.starts == 5);
    for (std::uint64_t n = 1; n <= 3; ++n) {
      call.fill(++round);
      REQUIRE_FALSE(device::test_start(handle, n));
      REQUIRE(device::start(handle, n));
      REQUIRE(device::wait_start(handle, n, Engines{}));
      REQUIRE(call.wrong(round) == 0);
    }
    for (int n = 4; n <= 5; ++n) { // armed, made by the host
      call.fill(++round);
      REQUIRE(ferry_start(&call.request()) == MPI_SUCCESS);
      REQUIRE(ferry_wait(&call.request()) == MPI_SUCCESS);
      REQUIRE(call.wrong(round) == 0);
      REQUIRE(device::test_start(handle, static_cast<std::uint64_t>(n)));
    }
    call.fill(++round); // nothing is armed any more
    REQUIRE(ferry_start(&call.request()) == MPI_SUCCESS);
    REQUIRE(ferry_wait(&call.request()) == MPI_SUCCESS);
    REQUIRE(call.wrong(round) == 0);
    CHECK_FALSE(device::start(handle, 6));
    CHECK_FALSE(device::start(handle, 0));
  }
}

TEST_CASE("arm: what it refuses changes nothing") {
  static_cast<void>(gpu());
  const Comm comm = duplicate();
  Fixture call(comm);
  device::StartHandle handle;
  const auto arm = [&](ferry_request request, int starts, void* to, std::size_t size) {
    return ferry_arm(request, starts, to, size);
  };
  check_refused(
      arm(FERRY_REQUEST_NULL, 1, &handle, sizeof handle), MPI_ERR_REQUEST, "ferry_arm",
      {"the handle is null", "*_init"});
  for (const int starts : {0, -3}) {
    check_error(
        arm(call.request(), starts, &handle, sizeof handle), MPI_ERR_ARG, "ferry_arm", comm,
        {"starts to be armed", "arm 1 or more"});
  }
  check_error(
      arm(call.request(), 1, nullptr, sizeof handle), MPI_ERR_ARG, "ferry_arm", comm,
      {"the handle is NULL", "ferry/device.hpp"});
  check_error(
      arm(call.request(), 1, &handle, sizeof handle - 8), MPI_ERR_ARG, "ferry_arm", comm,
      {"bytes, not"});
  CHECK(handle.starts == 0);
  call.fill(1);
  REQUIRE(ferry_start(&call.request()) == MPI_SUCCESS);
  check_error(
      arm(call.request(), 1, &handle, sizeof handle), MPI_ERR_REQUEST, "ferry_arm", comm,
      {"the handle is active", "ferry_wait"});
  REQUIRE(ferry_wait(&call.request()) == MPI_SUCCESS);
  CHECK(call.wrong(1) == 0);
  REQUIRE(ferry_arm(call.request(), 1, &handle, sizeof handle) == MPI_SUCCESS);
  CHECK(handle.first == 2);
  call.fill(2);
  REQUIRE(device::start(handle, 1));
  REQUIRE(device::wait_start(handle, 1, Engines{}));
  CHECK(call.wrong(2) == 0);
}

TEST_CASE("arm: handles of the host, and those that are not persistent") {
  static_cast<void>(gpu());
  const Comm comm = duplicate();
  std::vector<std::int32_t> send(static_cast<std::size_t>(comm.size()), comm.rank());
  std::vector<std::int32_t> recv(send.size());
  device::StartHandle handle;
  ferry_request request = FERRY_REQUEST_NULL;
  REQUIRE(
      ferry_alltoall_init(
          send.data(), 1, MPI_INT32_T, recv.data(), 1, MPI_INT32_T, comm.get(), MPI_INFO_NULL,
          &request) == MPI_SUCCESS);
  check_error(
      ferry_arm(request, 1, &handle, sizeof handle), MPI_ERR_REQUEST, "ferry_arm", comm,
      {"no plan of a GPU", "ferry_start"});
  REQUIRE(ferry_request_free(&request) == MPI_SUCCESS);
  REQUIRE(
      ferry_ialltoall(
          send.data(), 1, MPI_INT32_T, recv.data(), 1, MPI_INT32_T, comm.get(), &request) ==
      MPI_SUCCESS);
  if (request != FERRY_REQUEST_NULL) {
    check_error(
        ferry_arm(request, 1, &handle, sizeof handle), MPI_ERR_REQUEST, "ferry_arm", comm,
        {"not persistent"});
    REQUIRE(ferry_wait(&request) == MPI_SUCCESS);
  }
}

namespace {

constexpr MPI_Aint kBytes = 4096;

struct Window {
  std::vector<std::byte> memory = std::vector<std::byte>(kBytes);
  void* device = gpu().lend(memory.data(), kBytes);
};

} // namespace

TEST_CASE("device team: its handle names the windows, and its errors are told") {
  const Comm comm = duplicate();
  const Window window;
  const Window source;
  ferry_device_team team = FERRY_DEVICE_TEAM_NULL;
  REQUIRE(
      ferry_device_team_create(comm.get(), window.device, kBytes, source.device, kBytes, &team) ==
      MPI_SUCCESS);
  device::TeamHandle handle;
  REQUIRE(ferry_device_team_handle(team, &handle, sizeof handle) == MPI_SUCCESS);
  CHECK(handle.rank == static_cast<std::uint32_t>(comm.rank()));
  CHECK(handle.ranks == static_cast<std::uint32_t>(comm.size()));
  CHECK(handle.window_bytes == kBytes);
  CHECK(handle.peers[handle.rank].window == window.device);
  CHECK(ferry_device_team_check(team) == MPI_SUCCESS);
  gpu().set_team_error({core::ErrorKind::bad_packet, "unknown packet 0x0000ffff", ""});
  check_refused(
      ferry_device_team_check(team), MPI_ERR_INTERN, "ferry_device_team_check",
      {"unknown packet 0x0000ffff"});
  gpu().set_team_error({});
  CHECK(ferry_device_team_check(team) == MPI_SUCCESS);
  check_refused(
      ferry_device_team_handle(team, &handle, sizeof handle + 8), MPI_ERR_ARG,
      "ferry_device_team_handle", {"bytes, not", "ferry/device.hpp"});
  check_refused(
      ferry_device_team_handle(team, nullptr, sizeof handle), MPI_ERR_ARG,
      "ferry_device_team_handle", {"NULL"});
  MPI_Barrier(comm.get());
  CHECK(ferry_device_team_free(&team) == MPI_SUCCESS);
  CHECK(team == FERRY_DEVICE_TEAM_NULL);
}

TEST_CASE("device team: what is refused before anything is exchanged") {
  const Comm comm = duplicate();
  const Window window;
  constexpr const char* kCreate = "ferry_device_team_create";
  ferry_device_team team = FERRY_DEVICE_TEAM_NULL;
  const auto refused = [&](void* at, MPI_Aint bytes, const void* from, MPI_Aint from_bytes,
                           std::initializer_list<const char*> words) {
    const int code = ferry_device_team_create(comm.get(), at, bytes, from, from_bytes, &team);
    check_error(code, MPI_ERR_BUFFER, kCreate, comm, words);
    CHECK(team == FERRY_DEVICE_TEAM_NULL);
  };
  check_error(
      ferry_device_team_create(comm.get(), window.device, kBytes, nullptr, 0, nullptr), MPI_ERR_ARG,
      kCreate, comm, {"team is NULL"});
  refused(nullptr, kBytes, nullptr, 0, {"the window is NULL"});
  refused(window.device, 0, nullptr, 0, {"has 0 bytes"});
  refused(window.device, -8, nullptr, 0, {"has -8 bytes"});
  refused(window.device, kBytes, nullptr, 8, {"the source is NULL"});
  refused(window.device, kBytes, window.device, -8, {"has -8 bytes"});
  check_refused(
      ferry_device_team_handle(nullptr, &team, sizeof team), MPI_ERR_ARG,
      "ferry_device_team_handle", {"the team is null"});
  check_refused(
      ferry_device_team_check(nullptr), MPI_ERR_ARG, "ferry_device_team_check",
      {"the team is null"});
  check_refused(
      ferry_device_team_free(nullptr), MPI_ERR_ARG, "ferry_device_team_free", {"team is NULL"});
  CHECK(ferry_device_team_free(&team) == MPI_SUCCESS); // a null team, as free(NULL)
}

TEST_CASE("device team: what does not fit on one rank is refused on all") {
  const Comm comm = duplicate();
  const bool last = comm.rank() == comm.size() - 1;
  const Window window;
  std::vector<std::byte> host(kBytes);
  ferry_device_team team = FERRY_DEVICE_TEAM_NULL;
  const auto create = [&](void* at, MPI_Aint bytes, const void* from, MPI_Aint from_bytes) {
    return ferry_device_team_create(comm.get(), at, bytes, from, from_bytes, &team);
  };
  constexpr const char* kCreate = "ferry_device_team_create";
  check_error(
      create(last ? host.data() : window.device, kBytes, nullptr, 0), MPI_ERR_BUFFER, kCreate, comm,
      {"the window of rank", "is no device memory"});
  check_error(
      create(window.device, kBytes, last ? host.data() : nullptr, last ? kBytes : 0),
      MPI_ERR_BUFFER, kCreate, comm, {"the source of rank", "is no device memory"});
  CHECK(team == FERRY_DEVICE_TEAM_NULL);
  if (comm.size() == 1) return;
  check_error(
      create(window.device, last ? kBytes / 2 : kBytes, nullptr, 0), MPI_ERR_TRUNCATE, kCreate,
      comm, {"the window of rank", "of one size"});
  CHECK(team == FERRY_DEVICE_TEAM_NULL);
}

} // namespace ferry::test
