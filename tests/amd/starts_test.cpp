// SPDX-License-Identifier: MIT
// Who starts a plan on modelled GPUs: the host, a kernel through a handle, a stream by a kernel of
// one lane or a function on the host, a graph.
#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <string>

#include "device/start.hpp"
#include "lib/amd/kernels/kernels.hpp"
#include "lib/amd/sdma_plan.hpp"
#include "lib/config/config.hpp"
#include "tests/amd/fake/modules.hpp"
#include "tests/amd/rig.hpp"
#include "tests/support/patience.hpp"

namespace ferry::test {
namespace {

using core::Operation;

const Trial kTrial{Operation::alltoall, 3000};

// What a kernel does that has a handle: starts, each with new data, and looks at each result.
std::size_t run_kernel(TrialRun& run, const device::StartHandle& handle, int before, int starts) {
  std::size_t wrong = 0;
  for (int i = 1; i <= starts; ++i) {
    run.fill(before + i);
    const auto number = static_cast<std::uint64_t>(i);
    const bool done =
        device::start(handle, number) && device::wait_start(handle, number, Patience());
    wrong += done ? run.wrong(before + i) : 1;
  }
  return wrong;
}

std::size_t on_another_thread(
    TrialRun& run, const device::StartHandle& handle, int before, int starts) {
  return std::async(std::launch::async, [&] { return run_kernel(run, handle, before, starts); })
      .get();
}

std::size_t by_host(TrialRun& run, int iteration) {
  run.fill(iteration);
  run.plan().start();
  const core::Status status = finish(run.plan());
  CHECK_MESSAGE(status.ok(), status.cause);
  return run.wrong(iteration);
}

// Rings are overwritten several times, and all counts cross 2^32 on the way.
TEST_CASE("amd: 1000 starts that were armed ahead, by a kernel and by the host, in turns") {
  RigSettings settings;
  settings.in_order = true;
  settings.options.set_up.max_packet_bytes = 32;
  settings.options.set_up.first = (std::uint64_t{1} << 32) - 450;
  Rig rig(settings);
  MpiTeam team = rig.fresh_team();
  Trial trial = kTrial;
  trial.block = 300;
  TrialRun run(rig, team, trial);
  constexpr int kBatch = 100;
  constexpr int kByKernel = 70;
  std::size_t wrong = 0;
  for (int made = 0; made < 1000; made += kBatch) {
    const device::StartHandle handle = run.plan().arm(kBatch);
    CHECK(handle.starts == kBatch);
    wrong += on_another_thread(run, handle, made, kByKernel);
    for (int i = kByKernel + 1; i <= kBatch; ++i) wrong += by_host(run, made + i);
  }
  CHECK(wrong == 0);
  for (const std::string& fault : rig.kernel().faults()) FAIL_CHECK(fault);
}

TEST_CASE("amd: a kernel may let several starts run, one behind the other") {
  Rig rig({});
  MpiTeam team = rig.fresh_team();
  TrialRun run(rig, team, kTrial);
  const device::StartHandle handle = run.plan().arm(7);
  run.fill(7);
  CHECK(device::start(handle, 7));
  CHECK(device::wait_start(handle, 7, Patience()));
  CHECK(run.wrong(7) == 0);
  CHECK_FALSE(device::start(handle, 8));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(by_host(run, 8) == 0);
}

TEST_CASE("amd: what can be armed is bounded by the ring, and room comes back") {
  RigSettings settings;
  settings.in_order = true;
  Rig rig(settings);
  MpiTeam team = rig.fresh_team();
  TrialRun run(rig, team, kTrial);
  auto& plan = dynamic_cast<amd::SdmaPlan&>(run.plan());
  // All ranks make the same starts.
  int room = static_cast<int>(plan.room());
  MPI_Allreduce(MPI_IN_PLACE, &room, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  CHECK(room >= 100);
  std::string cause;
  try {
    (void)plan.arm(static_cast<int>(plan.room()) + 1);
  } catch (const core::Failure& failure) {
    cause = failure.status().cause;
  }
  CHECK_MESSAGE(contains(cause, "more starts do not fit into the rings, "), cause);
  const device::StartHandle handle = plan.arm(room);
  run.fill(1);
  CHECK(device::start(handle, handle.starts));
  CHECK(device::wait_start(handle, handle.starts, Patience()));
  CHECK(run.wrong(1) == 0);
  CHECK(on_another_thread(run, plan.arm(room), 1, 3) == 0);
}

TEST_CASE("amd: where the host carries out packets no kernel can start, and the error says so") {
  RigSettings settings;
  settings.options.path = amd::PathChoice::hsa;
  Rig rig(settings);
  MpiTeam team = rig.fresh_team();
  TrialRun run(rig, team, kTrial);
  std::string cause;
  try {
    (void)run.plan().arm(1);
  } catch (const core::Failure& failure) {
    cause = failure.status().cause;
  }
  CHECK_MESSAGE(contains(cause, "the host carries out the packets of this plan"), cause);
  CHECK(by_host(run, 1) == 0);
}

RigSettings with_kernels() {
  RigSettings settings;
  settings.kernels = true;
  settings.options.path = amd::PathChoice::kfd;
  return settings;
}

TEST_CASE("amd: starts on a stream by a kernel, with no function on the host") {
  if (amd::code_objects().count == 0) return;
  Rig rig(with_kernels());
  MpiTeam team = rig.fresh_team();
  TrialRun run(rig, team, kTrial);
  FakeStream stream;
  const std::size_t before = FakeRocr::host_functions();
  for (int iteration = 1; iteration <= 12; ++iteration) {
    if (iteration % 4 == 0) {
      CHECK(by_host(run, iteration) == 0);
      continue;
    }
    run.fill(iteration);
    run.plan().start_on_stream(&stream);
    stream.synchronize();
    CHECK(run.wrong(iteration) == 0);
  }
  // Several in a row: what is behind a start on the stream sees its result.
  std::size_t wrong = 0;
  for (int iteration = 13; iteration <= 20; ++iteration) {
    stream.push([&run, iteration] { run.fill(iteration); });
    run.plan().start_on_stream(&stream);
    stream.push([&run, &wrong, iteration] { wrong += run.wrong(iteration); });
  }
  stream.synchronize();
  CHECK(wrong == 0);
  CHECK(FakeRocr::host_functions() == before);
  CHECK(kernel_launches() > 0);
  CHECK(run.plan().status().ok());
}

TEST_CASE("amd: a start on a stream comes behind those of a handle, or is an error") {
  if (amd::code_objects().count == 0) return;
  Rig rig(with_kernels());
  MpiTeam team = rig.fresh_team();
  TrialRun run(rig, team, kTrial);
  FakeStream stream;
  const device::StartHandle handle = run.plan().arm(2);
  CHECK(on_another_thread(run, handle, 0, 1) == 0);
  CHECK_THROWS_AS(run.plan().start_on_stream(&stream), core::Failure);
  CHECK(by_host(run, 2) == 0);
  run.fill(3);
  run.plan().start_on_stream(&stream);
  stream.synchronize();
  CHECK(run.wrong(3) == 0);
}

TEST_CASE("amd: a graph with a start is replayed: the host arms each, and goes on to do so") {
  if (amd::code_objects().count == 0) return;
  Rig rig(with_kernels());
  MpiTeam team = rig.fresh_team();
  TrialRun run(rig, team, kTrial);
  FakeStream stream;
  run.fill(1);
  run.plan().start_on_stream(&stream);
  stream.synchronize();
  CHECK(run.wrong(1) == 0);
  const std::size_t before = FakeRocr::host_functions();
  stream.begin_capture();
  run.plan().start_on_stream(&stream);
  stream.end_capture();
  CHECK(FakeRocr::host_functions() == before + 1);
  for (int iteration = 2; iteration <= 5; ++iteration) {
    run.fill(iteration);
    if (iteration % 2 == 0) stream.replay();
    if (iteration % 2 == 1) run.plan().start_on_stream(&stream);
    stream.synchronize();
    CHECK(run.wrong(iteration) == 0);
  }
  CHECK(run.plan().status().ok());
}

TEST_CASE("amd: starts on a stream, and in a graph that is replayed") {
  for (const amd::PathChoice path : {amd::PathChoice::automatic, amd::PathChoice::staging}) {
    RigSettings settings;
    settings.options.path = path;
    Rig rig(settings);
    MpiTeam team = rig.fresh_team();
    TrialRun run(rig, team, kTrial);
    FakeStream stream;
    run.fill(1);
    run.plan().start_on_stream(&stream);
    stream.synchronize();
    CHECK(run.wrong(1) == 0);
    stream.begin_capture();
    run.plan().start_on_stream(&stream);
    stream.end_capture();
    for (int iteration = 2; iteration <= 4; ++iteration) {
      run.fill(iteration);
      stream.replay();
      stream.synchronize();
      CHECK(run.wrong(iteration) == 0);
    }
    CHECK(run.plan().status().ok());
  }
}

// With FERRY_TIMEOUT=0.5; see meson.build.
TEST_CASE("amd: a start on a stream ends with an error when the other ranks make none") {
  if (amd::code_objects().count == 0 || core::config().timeout != 0.5) return;
  Rig rig(with_kernels());
  if (rig.ranks() == 1) return;
  MpiTeam team = rig.fresh_team();
  TrialRun run(rig, team, kTrial);
  FakeStream stream;
  run.fill(1);
  if (rig.rank() == 0) {
    run.plan().start_on_stream(&stream);
    stream.synchronize();
    CHECK(run.plan().progress() == core::Poll::ready);
    const std::string cause = run.plan().status().cause;
    CHECK_MESSAGE(contains(cause, "waited 0.5 s on a stream: "), cause);
    CHECK_MESSAGE(contains(cause, "stands at "), cause);
    CHECK_THROWS_AS(run.plan().start_on_stream(&stream), core::Failure);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

} // namespace
} // namespace ferry::test
