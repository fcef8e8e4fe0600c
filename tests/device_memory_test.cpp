// SPDX-License-Identifier: MIT
// Device memory in every form, on some ranks or on all, with a module that no GPU is needed for.
#include <doctest/doctest.h>

#include "lib/exec/device_memory.hpp"
#include "support/fake_gpu.hpp"
#include "support/thread_job.hpp"

using namespace ferry::test;
using namespace ferry::core;
namespace device = ferry::device;

namespace {

FakeGpu& gpu() {
  static FakeGpu& the_gpu = *[] {
    auto* fake = new FakeGpu; // lives as long as the process
    install_device_backend(DeviceKind::nvidia, *fake);
    return fake;
  }();
  return the_gpu;
}

constexpr Operation kOperations[] = {
    Operation::alltoall, Operation::allgather, Operation::broadcast};

struct Shape {
  Call call;
  int ranks = 3;
  int with_device = 3; // the first ranks have device memory
};

// The call on device addresses of the same buffers.
CollectiveDesc on_device(const CollectiveDesc& desc, int ranks) {
  const std::size_t bytes = desc.block_bytes() * static_cast<std::size_t>(ranks) + 1;
  CollectiveDesc device = desc;
  device.recv = gpu().lend(desc.recv, bytes);
  device.send = desc.send == desc.recv ? device.recv : gpu().lend(desc.send, bytes);
  return device;
}

void run_shape(const Shape& shape, Form form, const char* explained, Faults& faults) {
  const auto meeting = std::make_shared<Meeting>(shape.ranks);
  run_ranks(shape.ranks, faults, [&](int rank) {
    const Comm comm = make_comm(meeting, rank, "gpus");
    Operands operands(shape.call, rank, shape.ranks, Memory::foreign, Memory::foreign);
    CollectiveDesc desc = operands.desc(form);
    if (rank < shape.with_device) desc = on_device(desc, shape.ranks);
    std::unique_ptr<PersistentPlan> plan;
    if (form == Form::persistent) {
      plan = comm->make_plan(desc);
      const bool told =
          rank >= shape.with_device || plan->explain().find(explained) != std::string::npos;
      faults.expect(told, "explain says: " + plan->explain());
    }
    for (std::uint64_t iteration = 1; iteration <= 5; ++iteration) {
      operands.prepare(iteration);
      Status status;
      if (plan != nullptr) {
        InFlight flight(comm, *plan);
        status = flight.wait();
      } else if (form == Form::nonblocking) {
        InFlight flight(comm, desc);
        status = flight.wait();
      } else {
        status = run_blocking(comm, desc);
      }
      const std::string fault = status.ok() ? operands.check(iteration) : status.cause;
      faults.expect(fault.empty(), fault);
    }
  });
}

} // namespace

TEST_CASE("device memory: every form, on all ranks or on some, through the host") {
  gpu().set_makes_plans(false);
  for (const Operation operation : kOperations) {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{5000}, std::size_t{300'000}}) {
      for (const bool in_place : {false, true}) {
        if (in_place && operation == Operation::broadcast) continue;
        for (const int with_device : {1, 3}) {
          for (const Form form : {Form::blocking, Form::nonblocking, Form::persistent}) {
            Faults faults;
            run_shape(
                {{operation, in_place, 1, bytes}, 3, with_device}, form,
                "device memory goes through the host: the fake GPU makes no such plan", faults);
            CHECK(faults.first() == "");
          }
        }
      }
    }
  }
  CHECK(gpu().copies() > 0);
}

TEST_CASE("device memory: a plan of the module runs, also with ranks that have host memory") {
  gpu().set_makes_plans(true);
  for (const int with_device : {1, 2, 4}) {
    Faults faults;
    run_shape(
        {{Operation::alltoall, false, 0, 4096}, 4, with_device}, Form::persistent,
        "made by the fake GPU", faults);
    CHECK(faults.first() == "");
  }
}

TEST_CASE("device memory: a start on a stream needs a plan of a GPU") {
  gpu().set_makes_plans(false);
  const auto meeting = std::make_shared<Meeting>(2);
  Faults faults;
  run_ranks(2, faults, [&](int rank) {
    const Comm comm = make_comm(meeting, rank, "hosts");
    Operands operands(
        {Operation::alltoall, false, 0, 64}, rank, 2, Memory::foreign, Memory::foreign);
    const auto plan = comm->make_plan(operands.desc(Form::persistent));
    const Status status = comm->start_on_stream(*plan, nullptr);
    faults.expect(status.kind == ErrorKind::request, "no error: " + status.cause);
  });
  CHECK(faults.first() == "");
}

TEST_CASE("device memory: starts of a kernel need a plan of a GPU") {
  for (const bool makes_plans : {false, true}) {
    gpu().set_makes_plans(makes_plans);
    const auto meeting = std::make_shared<Meeting>(2);
    Faults faults;
    run_ranks(2, faults, [&](int rank) {
      const Comm comm = make_comm(meeting, rank, "arming");
      Operands operands(
          {Operation::alltoall, false, 0, 64}, rank, 2, Memory::foreign, Memory::foreign);
      const auto plan = comm->make_plan(on_device(operands.desc(Form::persistent), 2));
      try {
        const device::StartHandle handle = comm->arm(*plan, 3);
        faults.expect(makes_plans, "a plan of the host was armed");
        faults.expect(handle.first == 1 && handle.starts == 3, "wrong starts");
        faults.expect(!device::start(handle, 0) && !device::start(handle, 4), "no such start");
        faults.expect(device::start(handle, 2) && *handle.release == 2, "not released");
        faults.expect(!device::test_start(handle, 1), "done before it ran");
      } catch (const Failure& failure) {
        faults.expect(
            !makes_plans && failure.status().kind == ErrorKind::request, failure.status().cause);
      }
    });
    CHECK(faults.first() == "");
  }
}

namespace {

// What rank 1 brings in place of what fits, and the error of all ranks.
struct TeamCase {
  std::uint64_t bytes_of_last = 4096;
  bool last_on_host = false;
  ErrorKind expected = ErrorKind::none;
};

void make_kernel_teams(const TeamCase& c, Faults& faults) {
  constexpr int kRanks = 3;
  constexpr std::uint64_t kBytes = 4096;
  const auto meeting = std::make_shared<Meeting>(kRanks);
  run_ranks(kRanks, faults, [&](int rank) {
    const Comm comm = make_comm(meeting, rank, "kernels");
    std::vector<std::byte> memory(kBytes);
    const bool last = rank == kRanks - 1;
    TeamMemory mine;
    mine.window = last && c.last_on_host ? memory.data() : gpu().lend(memory.data(), kBytes);
    mine.window_bytes = last ? c.bytes_of_last : kBytes;
    try {
      const auto team = comm->make_kernel_team(mine);
      const device::TeamHandle& handle = team->handle();
      faults.expect(c.expected == ErrorKind::none, "no error");
      faults.expect(handle.rank == static_cast<std::uint32_t>(rank), "wrong rank");
      faults.expect(handle.ranks == kRanks && handle.window_bytes == kBytes, "wrong team");
      faults.expect(
          handle.peers[static_cast<std::size_t>(rank)].window == mine.window, "wrong window");
      faults.expect(team->error().ok(), "an error of nobody");
    } catch (const Failure& failure) {
      faults.expect(failure.status().kind == c.expected, failure.status().cause);
    }
  });
}

} // namespace

TEST_CASE("device memory: a team for kernels is made by all ranks or by none") {
  const TeamCase cases[] = {{}, {64, false, ErrorKind::mismatch}, {4096, true, ErrorKind::buffer}};
  for (const TeamCase& c : cases) {
    Faults faults;
    make_kernel_teams(c, faults);
    CHECK(faults.first() == "");
  }
}
