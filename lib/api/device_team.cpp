// SPDX-License-Identifier: MIT
// ferry.h for kernels: teams, and starts that a kernel makes.
#include <fmt/format.h>
#include <cstring>

#include "include/ferry/ferry.h"
#include "lib/api/report.hpp"
#include "lib/api/request.hpp"
#include "lib/api/state.hpp"

struct ferry_device_team_s {
  std::shared_ptr<ferry::core::Communicator> state; // outlives kernels
  MPI_Comm comm = MPI_COMM_NULL;
  std::unique_ptr<ferry::core::KernelTeam> kernels;
};

namespace ferry::core {
namespace {

TeamMemory memory_of(
    void* window, MPI_Aint window_bytes, const void* source, MPI_Aint source_bytes) {
  if (window == nullptr || window_bytes <= 0) {
    throw Failure(
        ErrorKind::buffer, fmt::format("the window is NULL or has {} bytes", window_bytes),
        "pass device memory of 1 or more bytes");
  }
  if (source_bytes < 0 || (source == nullptr && source_bytes != 0)) {
    throw Failure(
        ErrorKind::buffer, fmt::format("the source is NULL or has {} bytes", source_bytes),
        "pass device memory, or NULL and 0");
  }
  return {
      window, static_cast<std::uint64_t>(window_bytes), source,
      static_cast<std::uint64_t>(source_bytes)};
}

ferry_device_team_s& team_of(ferry_device_team team) {
  if (team != nullptr) return *team;
  throw Failure(ErrorKind::argument, "the team is null", "pass a team of ferry_device_team_create");
}

// Handles begin with size and version, which the program was compiled with.
template <class Handle>
void give(const Handle& handle, void* to, std::size_t size) {
  if (to == nullptr || size != sizeof handle) {
    throw Failure(
        ErrorKind::argument,
        fmt::format("the handle is NULL or has {} bytes, not {}", size, sizeof handle),
        "pass the address and size of the type in ferry/device.hpp of this version");
  }
  std::memcpy(to, &handle, sizeof handle);
}

CallSite site_of(const char* function, const ferry_request_s& handle) {
  return {function, handle.state->detached() ? MPI_COMM_NULL : handle.comm, handle.quiet};
}

} // namespace
} // namespace ferry::core

using namespace ferry::core;

extern "C" {

int ferry_device_team_create(
    MPI_Comm comm, void* window, MPI_Aint window_bytes, const void* source, MPI_Aint source_bytes,
    ferry_device_team* team) {
  return guarded({"ferry_device_team_create", comm}, [&] {
    if (team == nullptr) {
      throw Failure(ErrorKind::argument, "team is NULL", "pass the address of a ferry_device_team");
    }
    *team = FERRY_DEVICE_TEAM_NULL;
    const TeamMemory memory = memory_of(window, window_bytes, source, source_bytes);
    StateHolder* holder = find_state(comm);
    if (holder == nullptr) {
      static_cast<void>(check_communicator(comm));
      holder = make_state(comm);
    }
    auto made = std::make_unique<ferry_device_team_s>();
    made->state = *holder;
    made->comm = comm;
    made->kernels = made->state->make_kernel_team(memory);
    *team = made.release();
    return MPI_SUCCESS;
  });
}

int ferry_device_team_handle(ferry_device_team team, void* handle, size_t size) {
  return guarded({"ferry_device_team_handle"}, [&] {
    give(team_of(team).kernels->handle(), handle, size);
    return MPI_SUCCESS;
  });
}

int ferry_device_team_check(ferry_device_team team) {
  return guarded({"ferry_device_team_check"}, [&] {
    const ferry_device_team_s& held = team_of(team);
    const Status status = held.kernels->error();
    if (status.ok()) return MPI_SUCCESS;
    const MPI_Comm comm = held.state->detached() ? MPI_COMM_NULL : held.comm;
    return report({"ferry_device_team_check", comm}, status);
  });
}

int ferry_device_team_free(ferry_device_team* team) {
  return guarded({"ferry_device_team_free"}, [&] {
    if (team == nullptr) {
      throw Failure(ErrorKind::argument, "team is NULL", "pass the address of a ferry_device_team");
    }
    delete *team;
    *team = FERRY_DEVICE_TEAM_NULL;
    return MPI_SUCCESS;
  });
}

int ferry_arm(ferry_request request, int starts, void* handle, size_t size) {
  constexpr const char* kFunction = "ferry_arm";
  if (request == FERRY_REQUEST_NULL) {
    return guarded({kFunction}, []() -> int {
      throw Failure(ErrorKind::request, "the handle is null", "pass a handle of a *_init call");
    });
  }
  return guarded(site_of(kFunction, *request), [&] {
    if (!request->persistent()) {
      throw Failure(
          ErrorKind::request, "the handle is not persistent", "only handles of *_init are started");
    }
    if (request->started) {
      throw Failure(
          ErrorKind::request, "the handle is active", "complete it with ferry_wait or ferry_test");
    }
    if (starts <= 0) {
      throw Failure(
          ErrorKind::argument, fmt::format("{} starts to be armed", starts), "arm 1 or more");
    }
    ferry::device::StartHandle none;
    give(none, handle, size);
    give(request->state->arm(*request->plan, starts), handle, size);
    return MPI_SUCCESS;
  });
}

} // extern "C"
