// SPDX-License-Identifier: MIT
// Groups of lanes, submissions of several packets, back-pressure, and what goes wrong.
#include <doctest/doctest.h>

#include <array>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "lib/engine/engine.hpp"
#include "lib/engine/queue.hpp"
#include "tests/support/ring_consumer.hpp"

using namespace ferry::test;
using ferry::core::Engine;
using ferry::core::make_inline_engine;
using ferry::core::Queue;
using ferry::core::QueueState;
using ferry::core::Window;
using ferry::core::WindowSet;
using Clock = std::chrono::steady_clock;

namespace {

// Lanes as threads. Each brings a packet, or every third one none.
struct Lanes {
  static constexpr std::uint64_t kWidth = 4;
  explicit Lanes(std::uint64_t number) : me(number) {}
  std::uint64_t me; // number of the group
  std::barrier<> barrier{kWidth};
  Reservation shared;
};

struct Lane {
  Lanes* group;
  std::uint64_t lane;
  std::uint64_t rank() const { return lane; }
  void sync() const { group->barrier.arrive_and_wait(); }
};

Sample lane_sample(std::uint64_t group, std::uint64_t lane, std::uint64_t round) {
  return (lane + round) % 3 == 2 ? Sample{} : make_sample(group * Lanes::kWidth + lane, round, 64);
}

GroupSlot slot_of(std::uint64_t group, std::uint64_t lane, std::uint64_t round) {
  GroupSlot slot;
  for (std::uint64_t i = 0; i < Lanes::kWidth; ++i) {
    if (i == lane) slot.before = slot.total;
    slot.total += lane_sample(group, i, round).bytes();
  }
  return slot;
}

void run_lane(
    const RingHandle& ring, Lanes& lanes, std::uint64_t lane, std::uint64_t rounds,
    const std::stop_token& stop) {
  const MultiProducer queue(ring);
  const Lane self{&lanes, lane};
  for (std::uint64_t round = 0; round < rounds && !stop.stop_requested();) {
    const Sample packet = lane_sample(lanes.me, lane, round);
    const GroupSlot slot = slot_of(lanes.me, lane, round);
    const bool room = submit_group(queue, self, &lanes.shared, slot, packet.span());
    round += room; // the same in all lanes
    if (!room) std::this_thread::yield();
  }
  lanes.barrier.arrive_and_drop(); // after a fault lanes stop one by one
}

// What one group submitted in this round comes out in one piece, in the order of the lanes.
bool take_group(Consumer& consumer, std::array<std::uint64_t, 2>& rounds) {
  Sample packet;
  if (!consumer.next(packet)) return false;
  const std::uint64_t group = packet.dw[1] / Lanes::kWidth;
  if (group >= rounds.size()) consumer.problem = "a packet of nobody";
  for (std::uint64_t lane = 0; lane < Lanes::kWidth && *consumer.problem == 0; ++lane) {
    const Sample expected = lane_sample(group, lane, rounds[group]);
    if (expected.count == 0) continue;
    if (packet != expected) consumer.problem = "not the packet of this lane";
    bool last = true;
    for (std::uint64_t i = lane + 1; i < Lanes::kWidth; ++i) {
      last &= lane_sample(group, i, rounds[group]).count == 0;
    }
    if (!last && !consumer.next(packet)) consumer.problem = "a doorbell inside of a group";
  }
  if (*consumer.problem == 0) ++rounds[group];
  return true;
}

} // namespace

TEST_CASE("lanes of a group make one reservation and ring once (rows 17, 18)") {
  constexpr std::uint64_t kRounds = 2000;
  HostRing memory = make_ring<MultiProducer>(512);
  std::array<Lanes, 2> groups{Lanes(0), Lanes(1)};
  std::vector<std::jthread> threads;
  for (Lanes& group : groups) {
    for (std::uint64_t lane = 0; lane < Lanes::kWidth; ++lane) {
      threads.emplace_back([&, lane](const std::stop_token& stop) {
        run_lane(memory.handle(), group, lane, kRounds, stop);
      });
    }
  }
  Consumer consumer(memory.handle());
  std::array<std::uint64_t, 2> rounds{};
  const auto limit = Clock::now() + std::chrono::seconds(60);
  for (; rounds != std::array{kRounds, kRounds} && *consumer.problem == 0;) {
    if (!take_group(consumer, rounds)) std::this_thread::yield();
    if (Clock::now() > limit) consumer.problem = "nothing comes";
  }
  for (std::jthread& thread : threads) thread.request_stop();
  threads.clear();
  CHECK(std::string(consumer.problem) == "");
}

TEST_CASE("a group without room posts nothing, in any lane, and one without packets needs none") {
  HostRing memory(128);
  const SingleProducer queue(memory.handle());
  Reservation shared;
  struct Alone {
    int rank() const { return 0; }
    void sync() const {}
  };
  const Sample packet = make_sample(1, 1, 32);
  CHECK(submit_group(queue, Alone{}, &shared, {}, {}));
  CHECK(submit_group(queue, Alone{}, &shared, {0, packet.bytes()}, packet.span()));
  CHECK(*memory.handle().doorbell == packet.bytes());
  CHECK_FALSE(submit_group(queue, Alone{}, &shared, {0, 68}, packet.span())); // above half a ring
  CHECK(*memory.handle().doorbell == packet.bytes());
  CHECK(*memory.handle().reserved == packet.bytes());
}

TEST_CASE_TEMPLATE(
    "packets of one submission stay together, with one doorbell (rows 20, 28)", Producer,
    SingleProducer, MultiProducer) {
  HostRing memory = make_ring<Producer>(256);
  const RingHandle& ring = memory.handle();
  const Producer queue(ring);
  const Sample first = make_sample(1, 1, 32);
  const Sample second = make_sample(1, 2, 32);
  const std::array<PacketSpan, 3> spans{first.span(), PacketSpan{}, second.span()};
  CHECK(submit(queue, spans.data(), 0));
  CHECK(*ring.doorbell == 0);
  CHECK(submit(queue, spans.data(), 3));
  Consumer consumer(ring);
  Sample packet;
  CHECK((consumer.next(packet) && packet == first));
  CHECK((consumer.next(packet) && packet == second));
  CHECK_FALSE(consumer.next(packet));
  const std::array<PacketSpan, 2> huge{
      first.span(), PacketSpan{first.dw.data(), ~std::uint64_t{0} / 4}};
  CHECK_FALSE(submit(queue, huge.data(), 2)); // the sum would wrap around
  int taken = 0;
  for (int i = 0; i < 20; ++i) taken += submit(queue, spans.data(), 3);
  CHECK((taken > 0 && taken < 20)); // a full ring is a status
  CHECK(*ring.doorbell == *ring.reserved);
}

TEST_CASE_TEMPLATE(
    "what was not reserved is not published, and the doorbell never goes back (rows 24, 28)",
    Producer, SingleProducer, MultiProducer) {
  HostRing memory = make_ring<Producer>(256);
  const Producer queue(memory.handle());
  CHECK_FALSE(queue.publish(Reservation{}));
  const Reservation first = queue.reserve(32);
  const Reservation second = queue.reserve(32);
  CHECK(*memory.handle().doorbell == 0);
  CHECK(queue.publish(first));
  CHECK(queue.publish(second));
  CHECK(*memory.handle().doorbell == 64);
  CHECK_FALSE(queue.publish(Reservation{}));
  if (std::is_same_v<Producer, SingleProducer>) CHECK_FALSE(queue.publish(first));
  CHECK(*memory.handle().doorbell == 64);
  CHECK(*memory.handle().wptr == 64);
}

TEST_CASE_TEMPLATE(
    "a full ring is an answer, or a reason to progress (row 26)", Producer, SingleProducer,
    MultiProducer) {
  HostRing memory = make_ring<Producer>(128);
  const Producer queue(memory.handle());
  Consumer consumer(memory.handle());
  Sample packet;
  int calls = 0;
  std::uint64_t seen = 0;
  const auto progress = [&] {
    ++calls;
    seen += consumer.next(packet);
    return calls < 5000; // a faulty ring may never have room
  };
  for (std::uint64_t n = 0; n < 1000; ++n) {
    const Sample sent = make_sample(1, n, 32);
    const Reservation r = reserve_or(queue, sent.bytes(), progress);
    REQUIRE(r);
    place(memory.handle(), r.offset, sent.dw.data(), sent.count);
    CHECK(queue.publish(r));
  }
  CHECK(calls > 900);
  CHECK(seen + 4 >= 1000);
  for (int i = 0; i < 64 && queue.reserve(4); ++i) continue;
  int patience = 3;
  CHECK_FALSE(reserve_or(queue, 32, [&] { return patience-- > 0; }));
  CHECK(patience == -1); // asked until it gave up
  calls = 0;
  CHECK_FALSE(reserve_or(queue, 68, progress)); // never fits
  CHECK_FALSE(reserve_or(queue, 0, progress));
  CHECK(calls == 0);
}

TEST_CASE_TEMPLATE(
    "an rptr that cannot be makes no room, and is forgotten (row 23)", Producer, SingleProducer,
    MultiProducer) {
  HostRing memory = make_ring<Producer>(256);
  const RingHandle& ring = memory.handle();
  const Producer queue(ring);
  for (int i = 0; i < 7; ++i) REQUIRE(queue.publish(queue.reserve(32)));
  for (const std::uint64_t rptr :
       {std::uint64_t{0}, std::uint64_t{228}, std::uint64_t{256}, std::uint64_t{1} << 40,
        ~std::uint64_t{0} - 31, ~std::uint64_t{0} << 63}) {
    CAPTURE(rptr);
    store_release(ring.rptr, rptr);
    CHECK_FALSE(queue.reserve(32));
    CHECK(*ring.rptr_hint == 0);
    CHECK(*ring.reserved == 224);
  }
  store_release(ring.rptr, std::uint64_t{64});
  CHECK(queue.reserve(32));
  CHECK(*ring.rptr_hint == 64);
  store_release(ring.rptr, std::uint64_t{0}); // back again
  CHECK(queue.reserve(32)); // up to 288 of 64 + 256
  CHECK_FALSE(queue.reserve(32));
  CHECK(*ring.rptr_hint == 64);
}

TEST_CASE("a handle is looked at before it is used (row 29)") {
  HostRing memory(64, Producers::several);
  const RingHandle good = memory.handle();
  CHECK(usable_by_several(good));
  CHECK(usable(HostRing(64).handle()));
  CHECK_FALSE(usable_by_several(HostRing(64).handle()));
  CHECK_FALSE(usable(RingHandle{}));
  const auto broken = [&](auto change) {
    RingHandle handle = good;
    change(handle);
    return !usable(handle);
  };
  CHECK(broken([](RingHandle& h) { h.size -= 8; }));
  CHECK(broken([](RingHandle& h) { ++h.version; }));
  CHECK(broken([](RingHandle& h) { h.base = nullptr; }));
  for (const std::uint64_t bytes : {0, 32, 96, 4095}) {
    CHECK(broken([&](RingHandle& h) { h.bytes = bytes; }));
  }
  for (const auto word :
       {&RingHandle::wptr, &RingHandle::rptr, &RingHandle::doorbell, &RingHandle::reserved,
        &RingHandle::rptr_hint}) {
    CHECK(broken([&](RingHandle& h) { h.*word = nullptr; }));
  }
  for (const auto word : {&RingHandle::stamps, &RingHandle::committed, &RingHandle::arrivals}) {
    RingHandle handle = good;
    handle.*word = nullptr;
    CHECK_FALSE(usable_by_several(handle));
  }
}

TEST_CASE("a blocked poll keeps its place, and other queues go on (rows 22, 27)") {
  std::array<std::uint64_t, 2> words{};
  Window window;
  window.base = reinterpret_cast<std::uint64_t>(words.data());
  window.bytes = sizeof words;
  window.writable = true;
  WindowSet windows;
  windows.add(window);
  std::array<Queue, 2> queues{Queue(4096), Queue(4096)};
  for (Queue& queue : queues) queue.set_windows(&windows);
  Poll64Packet poll{};
  AtomicPacket add{};
  REQUIRE(build_poll64(poll, window.base, 1) == PacketStatus::ok);
  REQUIRE(build_atomic_add(add, window.base + 8, 1) == PacketStatus::ok);
  const std::array<PacketSpan, 2> held{PacketSpan{poll.dw, 8}, PacketSpan{add.dw, 8}};
  REQUIRE(submit(SingleProducer(queues[0].ring()), held.data(), 2));
  for (int i = 0; i < 50; ++i) {
    REQUIRE(submit(SingleProducer(queues[1].ring()), &held[1], 1));
  }
  const std::unique_ptr<Engine> engine = make_inline_engine();
  const std::array<Queue*, 2> list{&queues[0], &queues[1]};
  for (int i = 0; i < 50; ++i) (void)engine->progress(list);
  CHECK(words[1] == 50);
  CHECK(queues[0].consumed() == 0);
  CHECK(engine->progress(list) == QueueState::blocked);
  words[0] = 1;
  CHECK(engine->progress(list) == QueueState::drained);
  CHECK(words[1] == 51);
  CHECK(queues[0].consumed() == 64);
}
