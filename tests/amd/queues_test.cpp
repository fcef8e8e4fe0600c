// SPDX-License-Identifier: MIT
// Queues on the modelled driver, one process: how they are made, refused, drained and destroyed.
#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "device/packet_build.hpp"
#include "lib/amd/backend.hpp"
#include "lib/amd/kfd_queues.hpp"
#include "lib/amd/patience.hpp"
#include "lib/amd/program.hpp"
#include "tests/amd/local_rig.hpp"

namespace ferry::test {
namespace {

using amd::Devices;
using amd::KfdDriver;
using core::Failure;

constexpr std::size_t kRing = 4096;

amd::Topology topology_of(LocalRig& rig) {
  return amd::read_topology(rig.kernel().sysfs());
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.status().cause + "; " + failure.status().remedy;
  }
  return "";
}

TEST_CASE("amd: a queue copies, signals and is taken down without a rest") {
  LocalRig rig;
  const amd::Topology topology = topology_of(rig);
  const std::size_t before = rig.kernel().objects();
  std::byte* const from = rig.rocr().hip_malloc(2, 4096);
  std::byte* const to = rig.rocr().hip_malloc(2, 4096);
  {
    KfdDriver driver(rig.kernel());
    const auto queues = amd::make_kfd_queues(driver);
    const auto queue = queues->create(topology.gpus[0], 5, kRing);
    CHECK(queue->name() == "queue on engine 5 of node 2");
    CHECK(driver.node(topology.gpus[0]).shared()); // the runtime was there first
    const device::SingleProducer producer(queue->ring());
    for (int i = 0; i < 500; ++i) { // many laps
      from[i] = static_cast<std::byte>(i * 7 + 1);
      device::CopyPacket copy{};
      REQUIRE(
          device::Build<device::Generation::gfx942>::copy(
              copy, reinterpret_cast<std::uint64_t>(to + i),
              reinterpret_cast<std::uint64_t>(from + i), 1) == device::PacketStatus::ok);
      const device::PacketSpan span{copy.dw, std::size(copy.dw)};
      const auto look = [&] {
        return device::submit(producer, &span, 1) ? core::Poll::ready : core::Poll::pending;
      };
      REQUIRE(amd::wait_patiently([] { return std::string("room"); }, 20, look).ok());
    }
  } // the destructor waits for what is in the ring
  for (int i = 0; i < 500; ++i) CHECK(to[i] == static_cast<std::byte>(i * 7 + 1));
  rig.rocr().hip_free(from);
  rig.rocr().hip_free(to);
  CHECK(rig.kernel().queues() == 0);
  CHECK(rig.kernel().objects() == before);
  CHECK(rig.kernel().machine().queues[2][5] == 0);
  CHECK(rig.kernel().faults().empty());
}

TEST_CASE("amd: the first in a process acquires the address space itself") {
  LocalRig rig;
  rig.end_runtime();
  const amd::Topology topology = topology_of(rig);
  KfdDriver driver(rig.kernel());
  CHECK_NOTHROW((void)amd::make_kfd_queues(driver)->create(topology.gpus[3], 4, kRing));
  CHECK_FALSE(driver.node(topology.gpus[3]).shared());
}

TEST_CASE("amd: what the driver refuses is told with its reason, and leaves nothing behind") {
  LocalRig rig;
  const amd::Topology topology = topology_of(rig);
  const auto make = [&] {
    KfdDriver driver(rig.kernel());
    (void)amd::make_kfd_queues(driver)->create(topology.gpus[0], 4, kRing);
  };
  const std::size_t objects = rig.kernel().objects();
  const std::size_t files = rig.kernel().files();
  const auto says = [&](const FakeFaults& faults, const char* text) {
    rig.kernel().set_faults(faults);
    const std::string told = refusal(make);
    CHECK_MESSAGE(told.find(text) != std::string::npos, told);
    CHECK(rig.kernel().objects() == objects);
    CHECK(rig.kernel().files() == files);
    CHECK(rig.kernel().queues() == 0);
  };
  says({.open_error = EACCES}, "groups video and render");
  says({.errors = {{0x01, EINVAL}}}, "to tell its version: Invalid argument");
  says({.errors = {{0x15, EINVAL}}}, "the address space of GPU 0000:75:00.0");
  says({.no_shared_descriptor = true}, "another library of this process holds it");
  says({.errors = {{0x14, EPERM}}}, "the address ranges of GPUs");
  says({.errors = {{0x16, ENOMEM}}}, "4096 bytes of memory: Cannot allocate memory");
  says({.errors = {{0x18, EINVAL}}}, "to map memory to a GPU");
  says({.errors = {{0x02, ENOMEM}}}, "a queue on engine 4 of node 2: Cannot allocate memory");
  says({.full = {{2, 4}}}, "a queue on engine 4 of node 2: Cannot allocate memory");
  rig.kernel().set_faults({});
  CHECK(refusal(make).empty());
}

TEST_CASE("amd: the modelled driver wants rings and cursors to be mappings of their own") {
  LocalRig rig;
  const int driver = rig.kernel().open("/dev/kfd", 0);
  std::byte* const memory = rig.rocr().hip_malloc(2, 4 * 4096);
  amd::kfd::CreateQueue create;
  create.ring_base = reinterpret_cast<std::uint64_t>(memory);
  create.ring_bytes = 4096; // of 16384
  create.wptr_address = create.rptr_address = create.ring_base + 4096;
  create.gpu_id = gpu_id_of(2);
  create.queue_type = amd::kfd::kQueueSdmaByEngine;
  create.percentage = 100;
  CHECK(rig.kernel().ioctl(driver, amd::kfd::kCreateQueue, &create) == -EINVAL);
  rig.rocr().hip_free(memory);
  rig.kernel().close(driver);
}

TEST_CASE("amd: before 1.17 a queue by engine is refused, and another kind is asked for") {
  LocalRig rig;
  rig.kernel().set_faults({.minor = 14});
  const amd::Topology topology = topology_of(rig);
  KfdDriver driver(rig.kernel());
  CHECK_FALSE(driver.chooses_engines());
  const auto queue = amd::make_kfd_queues(driver)->create(topology.gpus[0], 4, kRing);
  CHECK(queue->name() == "queue on an engine of node 2");
  CHECK(rig.kernel().machine().queues[2][2] == 1); // the first of those for links
}

TEST_CASE("amd: a packet that touches what is not mapped stops its queue, and no other") {
  LocalRig rig;
  const amd::Topology topology = topology_of(rig);
  KfdDriver driver(rig.kernel());
  const auto queues = amd::make_kfd_queues(driver);
  const auto bad = queues->create(topology.gpus[0], 4, kRing);
  const auto good = queues->create(topology.gpus[0], 6, kRing);
  const auto page = queues->control_page(topology.gpus[0]);
  const auto fence = [&](amd::SdmaQueue& queue, std::uint64_t address) {
    device::FencePacket packet{};
    const auto built = device::Build<device::Generation::gfx942>::fence(packet, address, 1);
    REQUIRE(built == device::PacketStatus::ok);
    const device::PacketSpan span{packet.dw, std::size(packet.dw)};
    REQUIRE(device::submit(device::SingleProducer(queue.ring()), &span, 1));
  };
  fence(*bad, 4096);
  fence(*good, reinterpret_cast<std::uint64_t>(page.get()));
  const auto look = [&] { return *page != 0 ? core::Poll::ready : core::Poll::pending; };
  CHECK(amd::wait_patiently([] { return std::string("the good queue"); }, 20, look).ok());
  const auto stopped = [&] {
    return rig.kernel().faults().size() == 1 ? core::Poll::ready : core::Poll::pending;
  };
  CHECK(amd::wait_patiently([] { return std::string("the bad queue"); }, 20, stopped).ok());
  CHECK_FALSE(bad->drained());
  bad->give_up();
}

TEST_CASE("amd: polls of 32 bits before, at and behind a multiple of 2^32") {
  using device::Generation;
  amd::RingProgram program;
  program.dwords.assign(6, 5u << 28);
  program.polls = {{0, 3, 1, 1}};
  auto dwords = program.dwords;
  const auto set = [&](std::uint64_t first, std::uint64_t epoch) {
    amd::set_epoch(program, Generation::gfx942, first, epoch, dwords.data());
    return std::pair{dwords[0] >> 28 & 7, dwords[3]};
  };
  const std::uint64_t wrap = std::uint64_t{1} << 32;
  CHECK(set(0, 1) == std::pair{5u, 1u}); // at least 1
  CHECK(set(wrap - 4, 2) == std::pair{5u, 0xfffffffeu});
  CHECK(set(wrap - 4, 3) == std::pair{4u, 0xfffffffeu}); // no longer the one before
  CHECK(set(wrap - 4, 4) == std::pair{4u, 0xffffffffu});
  CHECK(set(wrap - 4, 5) == std::pair{5u, 1u});
}

// A word at this address, written by two packets one after the other.
struct Halves {
  std::uint64_t first_address, second_address;
  std::uint32_t first, second;
  bool operator==(const Halves&) const = default;
};

TEST_CASE("amd: the word that tells of the end is never too large, and whole at the last packet") {
  amd::RingProgram program;
  program.dwords.assign(8, 0);
  program.fences = {0, 4};
  program.done = 0x7'1234'5670;
  auto dwords = program.dwords;
  const auto set = [&](std::uint64_t first, std::uint64_t epoch) {
    amd::set_epoch(program, device::Generation::gfx942, first, epoch, dwords.data());
    const auto address = [&](std::size_t at) {
      return dwords[at] | std::uint64_t{dwords[at + 1]} << 32;
    };
    return Halves{address(1), address(5), dwords[3], dwords[7]};
  };
  const std::uint64_t low = program.done;
  const std::uint64_t high = program.done + 4;
  const std::uint64_t wrap = std::uint64_t{1} << 32;
  CHECK(set(0, 1) == Halves{high, low, 0, 1});
  CHECK(set(0, wrap + 7) == Halves{high, low, 1, 7});
  CHECK(set(wrap - 4, 3) == Halves{high, low, 0, 0xffffffff});
  CHECK(set(wrap - 4, 4) == Halves{low, high, 0, 1}); // from ffffffff by way of 0
  CHECK(set(wrap - 4, 5) == Halves{high, low, 1, 1});
}

TEST_CASE("amd: the self-test names every layer, and the engine that is broken") {
  LocalRig rig("MI308X");
  amd::AmdBackend backend(rig.kernel(), rig.rocr().hsa(), FakeRocr::hip(), {});
  FakeFaults faults;
  faults.hanging = {{3, 6}};
  faults.cutting = {{4, 2}};
  rig.kernel().set_faults(faults);
  const std::string text = backend.self_test();
  const auto has = [&](const char* part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
  };
  has("pass topology: 8 GPUs that the ROCm runtime shows\n");
  has("pass driver: interface 1.17\n");
  has("pass address space of GPU 0000:75:00.0 (node 2, gfx942): shared with the ROCm runtime\n");
  has("pass memory of GPU 0000:75:00.0 (node 2, gfx942): ");
  has("pass kfd copy of 0000:75:00.0 to 0000:65:00.0, engine 2: ");
  has("fail kfd copy of 0000:65:00.0 to 0000:75:00.0, engine 6: the engine does not come to an "
      "end");
  has("fail kfd copy of 0000:55:00.0 to 0000:75:00.0, engine 2: the engine brings wrong bytes; "
      "keep");
  has("pass hsa copy of 0000:75:00.0 to 0000:65:00.0, engine ");
  has("skip handles between processes: ");
}

// What the self-test says of one pair of GPUs.
std::string engines_line(RocrSettings settings, const char* model) {
  LocalRig rig(model, settings);
  amd::AmdBackend backend(rig.kernel(), rig.rocr().hsa(), FakeRocr::hip(), {});
  const std::string text = backend.self_test();
  const auto at = text.find("info hsa engines of 0000:75:00.0 to 0000:65:00.0: ");
  return at == std::string::npos ? text : text.substr(at, text.find('\n', at) - at);
}

TEST_CASE("amd: copies by the runtime use the engines that it prefers, or the map of the board") {
  const auto says = [](const RocrSettings& settings, const char* model, const char* what) {
    const std::string line = engines_line(settings, model);
    CHECK_MESSAGE(
        line == "info hsa engines of 0000:75:00.0 to 0000:65:00.0: " + std::string(what), line);
  };
  says({.preferred = 0x80}, "MI300X", "7: the ROCm runtime prefers mask 0x80; idle now 0xffff");
  says({}, "MI355X", "12: board map, place 2 to 3; idle now 0xffff"); // it knows no better
  says(
      {.knows_preferred = false}, "MI300X",
      "12: the kernel recommends mask 0x1000; this ROCm runtime cannot tell any");
}

TEST_CASE("amd: a backend without GPUs is refused") {
  LocalRig rig("MI300X", {.hidden = {2, 3, 4, 5, 6, 7, 8, 9}});
  CHECK_THROWS_WITH_AS(
      amd::AmdBackend(rig.kernel(), rig.rocr().hsa(), FakeRocr::hip(), {}),
      "the ROCm runtime shows no GPU", Failure);
}

TEST_CASE("amd: memory of a GPU is told from others, interior pointers too") {
  LocalRig rig;
  amd::AmdBackend backend(rig.kernel(), rig.rocr().hsa(), FakeRocr::hip(), {});
  std::byte* const memory = rig.rocr().hip_malloc(4, 100000);
  int local = 0;
  CHECK(backend.owns(memory));
  CHECK(backend.owns(memory + 99999));
  CHECK_FALSE(backend.owns(&local));
  CHECK_FALSE(backend.owns(nullptr));
  const auto found = backend.devices().runtime.find(memory + 5000);
  REQUIRE(found.has_value());
  CHECK(found->base == memory);
  CHECK(found->node == 4);
  CHECK(found->id != 0);
  rig.rocr().hip_free(memory);
  CHECK_FALSE(backend.owns(memory));
  CHECK(backend.describe().find("GPU 0000:75:00.0 (node 2, gfx942): 2 + 14 SDMA engines") == 0);
}

} // namespace
} // namespace ferry::test
