// SPDX-License-Identifier: MIT
#include "lib/engine/engine.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/packet.hpp"

using namespace ferry::core;
using namespace ferry::device;
using Dwords = std::vector<std::uint32_t>;

namespace {

std::uint64_t at(const void* p) {
  return reinterpret_cast<std::uint64_t>(p);
}

Window window(const void* memory, std::size_t bytes, bool writable, int owner = 0) {
  return {at(memory), bytes, writable, owner, 0, 0, "test"};
}

template <class Packet, class... Arguments>
Dwords make(PacketStatus (*build)(Packet&, Arguments...), std::type_identity_t<Arguments>... a) {
  Packet packet{};
  REQUIRE(build(packet, a...) == PacketStatus::ok);
  return Dwords(std::begin(packet.dw), std::end(packet.dw));
}
Dwords copy(const void* to, const void* from, std::uint64_t bytes) {
  return make(build_copy, at(to), at(from), bytes);
}
Dwords add(const void* signal, std::uint64_t value) {
  return make(build_atomic_add, at(signal), value);
}
Dwords poll(const void* signal, std::uint64_t reference) {
  return make(build_poll64, at(signal), reference);
}
Dwords write(const void* to, const Dwords& data) {
  Dwords packet = make(build_write, at(to), data.size());
  packet.insert(packet.end(), data.begin(), data.end());
  return packet;
}

// Writes packets behind what was published and rings. The test sees to it that nothing straddles.
void feed(Queue& queue, const std::vector<Dwords>& packets) {
  std::uint64_t end = queue.written();
  for (const Dwords& packet : packets) {
    std::copy(packet.begin(), packet.end(), queue.image() + end % queue.bytes() / 4);
    end += packet.size() * 4;
  }
  queue.publish(end);
}

struct Fixture {
  Fixture() {
    windows.add(window(source.data(), source.size(), false));
    windows.add(window(target.data(), target.size(), true, 1));
    windows.add(window(signals.data(), sizeof signals, true, 2));
    queue.set_windows(&windows);
    queue.set_id(7);
    queue.set_hook(
        {[](void* me, int owner) { static_cast<Fixture*>(me)->woken.push_back(owner); }, this}, 3);
    for (std::size_t i = 0; i < source.size(); ++i) {
      source[i] = static_cast<unsigned char>(i * 37 + (i >> 8));
    }
  }
  std::string cause() const { return queue.error().cause; }

  std::array<unsigned char, 1024> source{};
  alignas(8) std::array<unsigned char, 1024> target{};
  std::array<std::uint64_t, 8> signals{};
  WindowSet windows;
  Queue queue{4096};
  std::vector<int> woken;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a NOP skips at most to the doorbell") {
  Fixture f;
  feed(f.queue, {{nop_header(100), 0xffff'ffff}});
  CHECK(f.queue.consume(9) == QueueState::drained);
  CHECK(f.queue.consumed() == 8);
}

TEST_CASE("a bad packet stops its queue with a text, and touches nothing") {
  Fixture f;
  unsigned char* const end = f.target.data() + f.target.size();
  const auto with = [](Dwords packet, std::size_t dword, std::uint32_t value) {
    packet[dword] = value;
    return packet;
  };
  const Dwords good = copy(f.target.data(), f.source.data(), 8);
  const Dwords signal = add(&f.signals[0], 1);
  const Dwords fill = make(build_fill, at(f.target.data()), 1u, 8u);
  const std::pair<Dwords, std::string> cases[] = {
      {{0x0000'00ff}, "unknown packet 0x000000ff"},
      {{0x0000'0901, 0, 0, 0, 0, 0, 0}, "unknown packet 0x00000901"},
      {{0xffff'ffff}, "unknown packet"},
      {with(good, 0, 0x0800'0001), "COPY_LINEAR with header 0x08000001"}, // broadcast
      {with(good, 1, 0x4000'0000), "not understood"},
      {with(good, 2, 0x0001'0000), "not understood"},
      {copy(end - 7, f.source.data(), 8), "(8 bytes) lies in no writable window"},
      {copy(f.target.data() - 1, f.source.data(), 8), "COPY_LINEAR to 0x"},
      {copy(f.source.data(), f.target.data(), 8), "lies in no writable window"},
      {copy(f.target.data(), f.source.data() + 1017, 8), "COPY_LINEAR from 0x"},
      {with(good, 6, 0xffff'ffff), "lies in no writable window"},
      {Dwords(good.begin(), good.end() - 1), "COPY_LINEAR is cut off by the doorbell"},
      {Dwords(signal.begin(), signal.begin() + 1), "ATOMIC is cut off by the doorbell"},
      {{2, 0, 0}, "WRITE_LINEAR is cut off by the doorbell"},
      {with(write(f.target.data(), {1, 2}), 3, 2), "WRITE_LINEAR is cut off by the doorbell"},
      {with(write(f.target.data(), {1, 2}), 3, 0x10'0001), "WRITE_LINEAR to"},
      {write(end - 4, {1, 2}), "WRITE_LINEAR to 0x"},
      {with(signal, 1, signal[1] + 4), "ATOMIC at 0x"},
      {with(signal, 0, 0x9e00'000a), "ATOMIC with operation 79"},
      {add(&f.signals[7] + 1, 1), "lies in no writable window"},
      {with(make(build_fence, at(f.target.data()), 1u), 1, 2), "is not aligned to 4 bytes"},
      {make(build_fence, at(f.source.data()) & ~3ull, 1u), "lies in no writable window"},
      {make(build_poll, 0x1000u, 1u), "POLL_REGMEM 0x1000 (4 bytes) lies in no window"},
      {with(poll(&f.signals[0], 1), 0, 0x7000'0508), "function 7"},
      {with(make(build_poll, at(&f.signals[0]), 1u), 0, 0x5000'0008), "of a register"},
      {with(fill, 4, 6), "CONST_FILL of 7 bytes"},
      {with(fill, 0, 0x0000'000b), "CONST_FILL"},
      {make(build_fill, at(end - 4), 1u, 8u), "CONST_FILL to 0x"},
  };
  for (const auto& [packet, text] : cases) {
    CAPTURE(text);
    Fixture g;
    g.queue.set_windows(&f.windows);
    feed(g.queue, {{nop_header(2), 0}, packet});
    CHECK(g.queue.consume(100) == QueueState::failed);
    CHECK_MESSAGE(contains(g.cause(), text), g.cause());
    CHECK(contains(g.cause(), "queue 7 offset 0x8: "));
    CHECK(g.queue.error().kind == ErrorKind::bad_packet);
    CHECK(g.queue.consumed() == 8);
    CHECK(g.queue.consume(100) == QueueState::failed);
  }
  CHECK(f.target == std::array<unsigned char, 1024>{});
  CHECK(f.signals == std::array<std::uint64_t, 8>{});
}

TEST_CASE("a packet that straddles the ring's end is bad, and so is one without windows") {
  Fixture f;
  f.queue.publish(4080);
  REQUIRE(f.queue.consume(4096) == QueueState::drained);
  f.queue.image()[4080 / 4] = 1;
  f.queue.publish(4080 + 28);
  CHECK(f.queue.consume(1) == QueueState::failed);
  CHECK(contains(f.cause(), "straddles the ring's end"));
  Queue bare(4096);
  feed(bare, {add(&f.signals[0], 1)});
  CHECK(bare.consume(1) == QueueState::failed);
}

TEST_CASE("WRITE, FILL, FENCE, ATOMIC and TRAP do what they say, and wake whom they concern") {
  Fixture f;
  feed(
      f.queue, {make(build_fill, at(f.target.data() + 4), 0x0403'0201u, 8u),
                write(f.target.data() + 16, {0x1111'1111, 0x2222'2222}),
                make(build_fence, at(f.target.data() + 28), 0xabcd'ef01u),
                add(&f.signals[1], std::uint64_t{1} << 40),
                add(&f.signals[1], 5),
                make(build_trap, 9u),
                {nop_header(3), 1, 2}});
  CHECK(f.queue.consume(100) == QueueState::drained);
  const auto dword = [&](std::size_t i) {
    std::uint32_t value = 0;
    std::copy_n(f.target.data() + 4 * i, 4, reinterpret_cast<unsigned char*>(&value));
    return value;
  };
  const std::uint32_t expected[] = {0,           0x0403'0201, 0x0403'0201, 0, 0x1111'1111,
                                    0x2222'2222, 0,           0xabcd'ef01, 0};
  for (std::size_t i = 0; i < std::size(expected); ++i) CHECK(dword(i) == expected[i]);
  CHECK(f.signals[1] == (std::uint64_t{1} << 40) + 5);
  CHECK(f.woken == std::vector<int>{1, 1, 2, 2, 3}); // write, fence, twice atomic, trap
  f.queue.set_hook({}, 0);
  feed(f.queue, {add(&f.signals[1], 1)});
  CHECK(f.queue.consume(1) == QueueState::drained); // no hook is fine
}

TEST_CASE("a poll blocks its queue until the word is there") {
  Fixture f;
  feed(
      f.queue,
      {add(&f.signals[0], 1), poll(&f.signals[1], std::uint64_t{1} << 32), add(&f.signals[0], 1),
       make(build_poll, at(&f.signals[2]) + 4, 5u), add(&f.signals[0], 1)});
  CHECK(f.queue.consume(100) == QueueState::blocked);
  f.signals[1] = 0xffff'ffff; // 32 bits would be satisfied
  CHECK(f.queue.consume(100) == QueueState::blocked);
  CHECK(f.signals[0] == 1);
  f.signals[1] = (std::uint64_t{1} << 32) + 1;
  CHECK(f.queue.consume(100) == QueueState::blocked);
  CHECK(f.signals[0] == 2);
  f.signals[2] = std::uint64_t{5} << 32;
  CHECK(f.queue.consume(100) == QueueState::drained);
  CHECK(f.signals[0] == 3);
}

namespace {

// Queue i waits for signal i and raises the signal of queue i + 1, once a round; the copies carry a
// token along, which changes each round.
struct Ring {
  static constexpr std::size_t kQueues = 8;
  struct alignas(64) Slot {
    std::uint64_t signal = 0;
    std::uint64_t token = 0;
  };

  Ring() {
    windows.add(window(slots.data(), sizeof slots, true));
    for (std::size_t i = 0; i < kQueues; ++i) {
      queues.push_back(std::make_unique<Queue>(1024));
      queues[i]->set_windows(&windows);
      queues[i]->set_hook({}, static_cast<int>(i));
      all.push_back(queues[i].get());
    }
  }
  void post(std::uint64_t round) {
    for (std::size_t i = 0; i < kQueues; ++i) {
      Slot& next = slots[(i + 1) % (kQueues + 1)];
      const Dwords packets = {nop_header(9), 0, 0, 0, 0, 0, 0, 0, 0};
      feed(
          *queues[i], {poll(&slots[i].signal, round), copy(&next.token, &slots[i].token, 8),
                       add(&next.signal, 1), packets});
    }
  }
  void start(std::uint64_t round) {
    slots[0].token = round * 1001;
    fetch_add(&slots[0].signal, std::uint64_t{1});
  }
  // Slot 8 has no queue of its own: what arrives there went through all of them.
  bool arrived(std::uint64_t round) const {
    return load_acquire(&slots[kQueues].signal) == round && slots[kQueues].token == round * 1001;
  }

  std::array<Slot, kQueues + 1> slots;
  WindowSet windows;
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<Queue*> all;
};

struct Wakes {
  std::array<std::atomic<std::uint64_t>, Ring::kQueues> count{};
  SignalHook hook() {
    return {
        [](void* me, int owner) {
          static_cast<Wakes*>(me)->count[static_cast<std::size_t>(owner)].fetch_add(1);
        },
        this};
  }
};

QueueState settle(Engine& engine, const std::vector<Queue*>& queues) {
  QueueState state = engine.progress(queues);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (; state == QueueState::blocked && std::chrono::steady_clock::now() < limit;) {
    std::this_thread::yield();
    state = engine.progress(queues);
  }
  return state;
}

} // namespace

TEST_CASE("the inline engine moves queues that wait for each other") {
  const std::unique_ptr<Engine> engine = make_inline_engine();
  CHECK(std::string(engine->name()) == "inline");
  Ring ring;
  for (std::uint64_t round = 1; round <= 100; ++round) {
    ring.post(round);
    engine->submit(ring.all);
    CHECK(engine->progress(ring.all) == QueueState::blocked);
    ring.start(round);
    const std::vector<Queue*> reversed(ring.all.rbegin(), ring.all.rend());
    QueueState state = QueueState::advanced;
    for (int i = 0; i < 20 && state == QueueState::advanced; ++i) {
      state = engine->progress(reversed); // one queue a call: the others are still blocked
    }
    CHECK(state == QueueState::drained);
    CHECK(ring.arrived(round));
  }
  ring.all[3]->publish(2);
  CHECK(engine->progress(ring.all) == QueueState::failed);
  engine->retire(ring.all);
}

TEST_CASE("threads move queues that wait for each other, and wake the owners") {
  CHECK_THROWS_AS((void)make_thread_engine(0, {}), Failure);
  for (const int threads : {1, 2, 3}) {
    Ring ring;
    Wakes wakes;
    const std::unique_ptr<Engine> engine = make_thread_engine(threads, wakes.hook());
    for (std::uint64_t round = 1; round <= 300; ++round) {
      ring.post(round);
      engine->submit(ring.all);
      if (round % 50 == 0) { // long enough for naps
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        CHECK(engine->progress(ring.all) == QueueState::blocked);
      }
      ring.start(round);
      REQUIRE(settle(*engine, ring.all) == QueueState::drained);
      REQUIRE(ring.arrived(round));
    }
    engine->retire(ring.all);
    for (const auto& count : wakes.count) CHECK(count >= 300);
  }
}

TEST_CASE("threads leave a retired queue alone, blocked or not, and take it up again") {
  Ring ring;
  Wakes wakes;
  const std::unique_ptr<Engine> engine = make_thread_engine(2, wakes.hook());
  for (std::uint64_t round = 1; round <= 100; ++round) {
    ring.post(round);
    engine->submit(ring.all);
    engine->retire(ring.all);
    ring.start(round);
    const std::uint64_t before = ring.all[0]->consumed();
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(ring.all[0]->consumed() == before);
    CHECK_FALSE(ring.all[7]->drained());
    engine->submit(ring.all);
    REQUIRE(settle(*engine, ring.all) == QueueState::drained);
    CHECK(ring.arrived(round));
  }
}

TEST_CASE("threads miss no work that is submitted while they finish the last") {
  Fixture f;
  const std::unique_ptr<Engine> engine = make_thread_engine(1, {});
  Queue* const queue = &f.queue;
  f.queue.set_hook({}, 0);
  for (std::uint64_t round = 1; round <= 20000; ++round) {
    feed(*queue, {add(&f.signals[0], 1)});
    engine->submit({&queue, 1});
    REQUIRE(settle(*engine, {queue}) == QueueState::drained);
  }
  CHECK(f.signals[0] == 20000);
  engine->retire({&queue, 1});
}

TEST_CASE("threads have let go of a queue when retire returns") {
  std::vector<unsigned char> from(std::size_t{1} << 20, 1);
  std::vector<unsigned char> to(from.size());
  WindowSet windows;
  windows.add(window(from.data(), from.size(), false));
  windows.add(window(to.data(), to.size(), true));
  const std::unique_ptr<Engine> engine = make_thread_engine(1, {});
  int caught = 0; // retired in the middle of its work
  for (int i = 0; i < 100 && caught < 3; ++i) {
    Queue queue(4096);
    Queue* const one = &queue;
    queue.set_windows(&windows);
    feed(queue, std::vector<Dwords>(100, copy(to.data(), from.data(), from.size())));
    engine->submit({&one, 1});
    for (; queue.consumed() == 0;) std::this_thread::yield();
    engine->retire({&one, 1});
    const std::uint64_t consumed = queue.consumed();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    CHECK(queue.consumed() == consumed);
    caught += consumed < queue.written();
  }
  CHECK(caught == 3);
}

TEST_CASE("threads report a failed queue, and an engine ends while queues are blocked") {
  Ring ring;
  Wakes wakes;
  std::unique_ptr<Engine> engine = make_thread_engine(2, wakes.hook());
  ring.post(1);
  feed(*ring.all[5], {{0x0000'00ff}});
  engine->submit(ring.all);
  ring.start(1);
  CHECK(settle(*engine, ring.all) == QueueState::failed);
  CHECK(contains(ring.all[5]->error().cause, "unknown packet"));
  engine->retire(std::span(ring.all).subspan(5, 1));
  CHECK(wakes.count[5] >= 1);
  ring.all[5] = ring.all[0];
  CHECK(settle(*engine, ring.all) == QueueState::drained);
  ring.queues[5] = nullptr;
  feed(*ring.all[0], {poll(&ring.slots[0].signal, 99)});
  engine->submit(std::span(ring.all).first(1));
  engine.reset();
  CHECK_FALSE(ring.all[0]->drained());
}
