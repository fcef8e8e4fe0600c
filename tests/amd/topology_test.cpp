// SPDX-License-Identifier: MIT
// What is read from the kernel, which engines are chosen, and what hides GPUs.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "lib/amd/devices.hpp"
#include "lib/amd/engine_map.hpp"
#include "lib/amd/selection.hpp"
#include "lib/amd/visibility.hpp"
#include "tests/amd/fake/modules.hpp"
#include "tests/amd/local_rig.hpp"

namespace ferry::test {
namespace {

using amd::EngineChoice;
using amd::Gpu;
using Engines = std::vector<std::uint32_t>;

TEST_CASE("amd: GPUs are known by node and bus address, in any order") {
  LocalRig rig("MI300X");
  const amd::Topology topology = amd::read_topology(rig.kernel().sysfs());
  REQUIRE(topology.gpus.size() == 8);
  CHECK(topology.gpus.front().node == 2); // two processors come first
  CHECK(topology.gpus.front().bus_address() == "0000:75:00.0");
  CHECK(topology.gpus.back().bus_address() == "0001:05:00.0");
  CHECK(topology.gpus.front().name() == "GPU 0000:75:00.0 (node 2, gfx942)");
  CHECK(topology.by_location(0, 0x6500) == topology.by_node(3));
  CHECK(topology.by_location(0, 0x0500) == nullptr); // another domain
  CHECK(topology.by_node(1) == nullptr); // a processor
}

TEST_CASE("amd: two nodes with one bus address are not told apart by it") {
  amd::Topology topology;
  topology.gpus.resize(2);
  topology.gpus[0].location = topology.gpus[1].location = 0x500;
  CHECK(topology.by_location(0, 0x500) == nullptr);
}

TEST_CASE("amd: GPUs that a cgroup denies are noticed") {
  LocalRig rig("MI300X", {}, {4});
  const amd::Topology topology = amd::read_topology(rig.kernel().sysfs());
  CHECK(topology.gpus.size() == 7);
  REQUIRE(topology.hidden.size() == 1);
  CHECK(topology.hidden.front() == "node 4 may not be read");
}

TEST_CASE("amd: a machine without the driver has no GPUs") {
  CHECK(amd::read_topology("/nonexistent").gpus.empty());
}

TEST_CASE("amd: each pair of an eight-GPU board has an engine of its own") {
  for (const char* model : {"MI300X", "MI355X"}) {
    CAPTURE(model);
    LocalRig rig(model);
    amd::Topology topology = amd::read_topology(rig.kernel().sysfs());
    for (const bool told : {true, false}) { // by the kernel, or by the map of the board
      for (Gpu& from : topology.gpus) {
        if (!told) {
          for (amd::Link& link : from.links) link.engines = 0;
        }
        std::set<std::uint32_t> used;
        for (const Gpu& to : topology.gpus) {
          if (&from == &to) continue;
          const EngineChoice choice = engines_to(from, to);
          REQUIRE(choice.engines.size() == 1);
          CHECK(choice.engines.front() >= 2);
          const bool by_kernel = told && std::string(model) == "MI300X"; // it recommends none there
          const char* const source = by_kernel ? "recommends mask" : "board map";
          CHECK(choice.why.find(source) != std::string::npos);
          used.insert(choice.engines.front());
        }
        CHECK(used.size() == 7);
      }
    }
  }
}

TEST_CASE("amd: a mask with several bits is taken, odd engines of MI308X are folded") {
  LocalRig rig("MI308X");
  const amd::Topology topology = amd::read_topology(rig.kernel().sysfs());
  const Gpu& from = topology.gpus[0];
  const EngineChoice choice = engines_to(from, topology.gpus[1]);
  CHECK(
      std::set<std::uint32_t>(choice.engines.begin(), choice.engines.end()) ==
      std::set<std::uint32_t>{2, 4, 6});
  // Peers begin at different engines.
  CHECK(choice.engines.front() != engines_to(from, topology.gpus[2]).engines.front());
  CHECK(amd::queue_budget(from) == 4 * 8);
  const EngineChoice rest = engines_to(from, topology.gpus[1], {2, 6});
  CHECK(rest.engines == Engines{4});
  const EngineChoice host = engines_to(from, topology.gpus[1], {2, 4, 6});
  CHECK(host.engines == Engines{0}); // better than none
  CHECK(engines_to(from, topology.gpus[1], {0, 2, 4, 6}).engines.empty());
}

TEST_CASE("amd: partitions without engines for links, and devices with fewer than two engines") {
  LocalRig rig("CPX");
  amd::Topology topology = amd::read_topology(rig.kernel().sysfs());
  const Gpu& from = topology.gpus[0];
  CHECK(engines_to(from, topology.gpus[1]).engines.size() == 2);
  CHECK(amd::queue_budget(from) == 2 * 8);
  Gpu one = from;
  one.host_engines = 1;
  CHECK(engines_to(one, topology.gpus[1]).engines == Engines{0});
  one.host_engines = 0;
  CHECK(engines_to(one, topology.gpus[1]).engines.empty());
  CHECK(engines_to(one, topology.gpus[1]).why.find("has no SDMA engines") != std::string::npos);
  CHECK(engines_to_self(one).engines.empty());
}

TEST_CASE("amd: halves of a card have engines and queues of their own, and one bus address") {
  LocalRig rig("DPX");
  amd::Topology topology = amd::read_topology(rig.kernel().sysfs());
  REQUIRE(topology.gpus.size() == 8);
  const Gpu& from = topology.gpus[0];
  const Gpu& twin = topology.gpus[1];
  const Gpu& other = topology.gpus[2];
  CHECK(from.name() == "GPU 0000:35:00.0 partition 0 (node 2, gfx942)");
  CHECK(twin.name() == "GPU 0000:35:00.0 partition 1 (node 3, gfx942)");
  CHECK(other.bus_address() == "0000:25:00.0");
  CHECK(topology.by_location(0, from.location) == &from);
  CHECK(amd::queue_budget(from) == 8 * 8);
  for (const Gpu* const to : {&twin, &other}) {
    const EngineChoice choice = engines_to(from, *to); // no engine of the board's map is there
    CHECK(
        std::set(choice.engines.begin(), choice.engines.end()) == std::set{2u, 3u, 4u, 5u, 6u, 7u});
    CHECK(choice.why.find("recommends mask 0xfc") != std::string::npos);
  }
  CHECK(engines_to(from, twin).engines.front() != engines_to(from, other).engines.front());
  // Where a driver counts no engines for links, those of the mask are not there.
  Gpu poor = from;
  poor.xgmi_engines = 0;
  CHECK(engines_to(poor, other).engines.size() == 2); // the host's
  CHECK(amd::queue_budget(poor) == 2 * 8);
  amd::HipApi hip = FakeRocr::hip();
  hip.modules = fake_hip_modules();
  const amd::Devices devices(rig.kernel(), rig.rocr().hsa(), hip);
  CHECK(devices.kernels.refuses(from) == "HIP finds GPUs by bus address, which partitions share");
}

TEST_CASE("amd: a partition has as many queues as its budget says") {
  for (const char* model : {"DPX", "CPX"}) {
    CAPTURE(model);
    LocalRig rig(model);
    const amd::Devices devices(rig.kernel(), rig.rocr().hsa(), FakeRocr::hip());
    const Gpu& gpu = devices.topology.gpus[1];
    EngineChoice all;
    for (std::uint32_t engine = 0; engine < gpu.engines(); ++engine) all.engines.push_back(engine);
    std::vector<amd::QueueLease> leases;
    for (std::uint32_t i = 0; i < amd::queue_budget(gpu); ++i) {
      leases.push_back(devices.kfd.pool->lease(gpu, all, 4096));
    }
    CHECK_THROWS_AS((void)devices.kfd.pool->lease(gpu, all, 4096), core::Failure);
    // The other half of the card has its own.
    CHECK(devices.kfd.pool->lease(devices.topology.gpus[0], all, 4096)->node() == 2);
  }
}

TEST_CASE("amd: the engines that the ROCm runtime prefers come first, where it tells any") {
  LocalRig rig("MI300X");
  const amd::Topology topology = amd::read_topology(rig.kernel().sysfs());
  const Gpu& from = topology.gpus[0];
  const Gpu& to = topology.gpus[1];
  const EngineChoice asked = engines_to(from, to, {}, 0x30);
  CHECK(std::set(asked.engines.begin(), asked.engines.end()) == std::set{4u, 5u});
  CHECK(asked.why == "the ROCm runtime prefers mask 0x30");
  CHECK(engines_to(from, to, {4}, 0x30).engines == Engines{5});
  CHECK(engines_to(from, to, {4, 5}, 0x30).engines.size() == 12); // neither works: all others
  CHECK(engines_to(from, to, {}, 0).why.find("the kernel recommends") == 0);
  CHECK(engines_to(from, to, {}, 1u << 31).engines.size() == 14); // it has no such engine
}

TEST_CASE("amd: own copies use engine 0, on gfx1250 all but the host's") {
  Gpu gpu;
  gpu.gfx = 90500;
  gpu.host_engines = 2;
  gpu.xgmi_engines = 14;
  CHECK(engines_to_self(gpu).engines == Engines{0});
  CHECK(engines_to_self(gpu, {0}).engines.front() == 2);
  gpu.gfx = 120500;
  CHECK(engines_to_self(gpu).engines.size() == 14);
  gpu.queues_per_engine = 8;
  CHECK(amd::queue_budget(gpu) == 16 * 6);
}

TEST_CASE("amd: devices whose packets are not known have no generation") {
  CHECK(amd::generation_of(90402) == device::Generation::gfx942);
  CHECK_FALSE(amd::generation_of(90008).has_value());
  CHECK_FALSE(amd::generation_of(120000).has_value());
  CHECK(amd::gfx_name(90010) == "gfx90a");
}

TEST_CASE("amd: what hides a GPU is named, with the option that cures it") {
  const amd::PeerGpu peer{3, 5, "0000:c6:00.0"};
  amd::Blinds blinds;
  const auto says = [&](const char* cause, const char* remedy, bool in_topology = true) {
    const amd::Hidden hidden = amd::why_hidden(peer, blinds, in_topology);
    CHECK_MESSAGE(hidden.cause.find(cause) == 0, hidden.cause);
    CHECK(hidden.cause.find("GPU 0000:c6:00.0 of rank 3") != std::string::npos);
    CHECK_MESSAGE(hidden.remedy.find(remedy) != std::string::npos, hidden.remedy);
  };
  says("the ROCm runtime does not show", "rocminfo");
  says("a container or cgroup hides", "/dev/kfd", false);
  blinds.hip_visible = "2";
  says("HIP_VISIBLE_DEVICES=2 hides", "hipSetDevice(local rank)");
  blinds.rocr_visible = "0";
  says("ROCR_VISIBLE_DEVICES=0 hides", "leave it unset");
  blinds.slurm_job = "17";
  says("a container or cgroup hides", "--gpu-bind=none", false);
  blinds.gpu_bind = "none";
  says("ROCR_VISIBLE_DEVICES=0 hides", "leave it unset");
  blinds.gpu_bind = "closest";
  says("SLURM_GPU_BIND=closest hides", "--gpu-bind=none");
  blinds.gpus_per_task = "1";
  says("SLURM_GPUS_PER_TASK=1 hides", "--gpus-per-node=N");
}

TEST_CASE("amd: the sizes from which copy engines are chosen have a source") {
  using core::Operation;
  const std::uint64_t mib = 1 << 20;
  const core::TableRecord table;
  const auto kernels = [&](Operation operation, std::uint64_t bytes, bool work = true) {
    return amd::select_path(operation, bytes, work, table).kernels;
  };
  CHECK(kernels(Operation::alltoall, 8 * mib - 1));
  CHECK_FALSE(kernels(Operation::alltoall, 8 * mib));
  CHECK(kernels(Operation::allgather, 65535));
  CHECK_FALSE(kernels(Operation::allgather, 65536));
  CHECK_FALSE(kernels(Operation::broadcast, 1, false));
  CHECK(kernels(Operation::broadcast, 256 * 1024 - 1));
  CHECK_FALSE(kernels(Operation::broadcast, 256 * 1024));
  CHECK(amd::longest_words(Operation::broadcast, table) == 2048);
  CHECK(
      amd::select_path(Operation::alltoall, 8 * mib, true, table).why ==
      "copy engines from 8388608 bytes (amd_alltoall_engines_from 8388608, built-in table: RCCL, "
      "NCCL_GIN_A2A_SDMA_MIN_BYTES (rocm-systems #10386))");
}

TEST_CASE("amd: a measured table takes the place of published sizes") {
  using core::Operation;
  core::TableRecord table;
  table.name = "/etc/t.json";
  table.gpu = "8 x MI300X";
  table.values.amd_broadcast_engines_from = 4096;
  table.measured.amd_broadcast_engines_from = 1;
  table.values.amd_broadcast_words_to = 512;
  CHECK(amd::longest_words(Operation::broadcast, table) == 512);
  CHECK(amd::select_path(Operation::broadcast, 4095, true, table).kernels);
  const amd::Selection selection = amd::select_path(Operation::broadcast, 4096, true, table);
  CHECK_FALSE(selection.kernels);
  CHECK(
      selection.why ==
      "copy engines from 4096 bytes (amd_broadcast_engines_from 4096, /etc/t.json: measured on 8 x "
      "MI300X)");
}

} // namespace
} // namespace ferry::test
