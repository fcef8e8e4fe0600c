// SPDX-License-Identifier: MIT
// Small rings over very many laps: one thread that interleaves, then threads that race.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/ring_consumer.hpp"

using namespace ferry::test;
using Clock = std::chrono::steady_clock;

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kShare = 100;
#elif defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kShare = 10;
#else
constexpr std::uint64_t kShare = 1;
#endif

constexpr std::uint64_t kSmallLaps = 10'000'000 / kShare;
constexpr auto kSpell = std::chrono::milliseconds(1000); // of a test that does what fits
template <class Producer>
bool post(const Producer& producer, const Sample& packet) {
  const PacketSpan span = packet.span();
  return submit(producer, &span, 1);
}

// Producer and consumer in one thread, in bursts of random lengths: full, empty and all between.
template <class Producer>
void run_laps(std::size_t ring_bytes, std::uint64_t laps) {
  CAPTURE(ring_bytes);
  HostRing memory = make_ring<Producer>(ring_bytes);
  const RingHandle& ring = memory.handle();
  const Producer producer(ring);
  Consumer consumer(ring);
  std::uint64_t sent = 0, seen = 0, wrong = 0, refused = 0;
  Sample packet;
  for (std::uint64_t burst = 0; consumer.position() < laps * ring_bytes && wrong == 0; ++burst) {
    const std::uint64_t random = mix(burst);
    bool room = true;
    for (std::uint64_t i = random % 8; i > 0 && room; --i) {
      room = post(producer, make_sample(1, sent, ring_bytes / 2));
      sent += room;
    }
    refused += !room;
    for (std::uint64_t i = room ? random / 8 % 8 : 8; i > 0 && consumer.next(packet); --i) {
      wrong += packet != make_sample(1, seen++, ring_bytes / 2);
    }
    if (*consumer.problem != 0) break;
  }
  for (; consumer.next(packet);) wrong += packet != make_sample(1, seen++, ring_bytes / 2);
  CHECK(std::string(consumer.problem) == "");
  CHECK(wrong == 0);
  CHECK(seen == sent);
  CHECK(refused > laps / 100);
  CHECK(*ring.doorbell == *ring.reserved); // row 25: one count for packets and padding
  CHECK(*ring.wptr == *ring.reserved);
  CHECK(consumer.position() == *ring.reserved);
}

template <class Producer>
std::uint64_t post_until(const std::stop_token& stop, const RingHandle& ring, std::uint32_t me) {
  const Producer producer(ring);
  std::uint64_t posted = 0;
  for (; !stop.stop_requested();) {
    const bool room = post(producer, make_sample(me, posted, ring.bytes / 2));
    posted += room;
    if (!room) std::this_thread::yield();
  }
  return posted;
}

// As many packets as fit into a spell, each producer a thread of its own.
template <class Producer>
void run_spell(std::uint32_t producers, std::size_t ring_bytes) {
  CAPTURE(producers);
  CAPTURE(ring_bytes);
  HostRing memory = make_ring<Producer>(ring_bytes);
  std::atomic<std::uint64_t> posted{0};
  std::vector<std::jthread> threads;
  for (std::uint32_t p = 0; p < producers; ++p) {
    threads.emplace_back([&, p](const std::stop_token& stop) {
      posted += post_until<Producer>(stop, memory.handle(), p);
    });
  }
  Consumer consumer(memory.handle());
  std::vector<std::uint64_t> next(producers);
  std::uint64_t wrong = 0, seen = 0;
  const auto take = [&](Sample& packet) {
    if (!consumer.next(packet)) return false;
    const std::uint32_t p = packet.dw[1];
    wrong += p >= producers || packet != make_sample(p, next[p]++, ring_bytes / 2);
    ++seen;
    return true;
  };
  Sample packet;
  for (const auto end = Clock::now() + kSpell; Clock::now() < end && *consumer.problem == 0;) {
    for (int i = 0; i < 100; ++i) {
      if (!take(packet)) std::this_thread::yield();
    }
  }
  for (std::jthread& thread : threads) thread.request_stop();
  threads.clear();
  for (; take(packet);) continue;
  MESSAGE(producers, " producers: ", consumer.position() / ring_bytes, " laps of ", ring_bytes);
  CHECK(std::string(consumer.problem) == "");
  CHECK(wrong == 0);
  CHECK(seen == posted.load());
  CHECK(consumer.position() / ring_bytes > 100);
}

} // namespace

TEST_CASE("ten million laps of mixed sizes, no packet straddles the end (rows 15, 25)") {
  for (const std::size_t units : {2, 4, 8, 16}) {
    run_laps<SingleProducer>(units * kRingUnit, kSmallLaps / 4);
  }
}

TEST_CASE("a ring for several producers over many laps (rows 15, 25)") {
  for (const std::size_t units : {2, 4, 8, 16}) {
    run_laps<MultiProducer>(units * kRingUnit, kSmallLaps / 40);
  }
}

TEST_CASE("small rings between threads, as many laps as fit") {
  run_spell<SingleProducer>(1, 2 * kRingUnit);
  run_spell<SingleProducer>(1, 16 * kRingUnit);
  run_spell<MultiProducer>(2, 2 * kRingUnit);
  run_spell<MultiProducer>(2, 16 * kRingUnit);
  run_spell<MultiProducer>(4, 8 * kRingUnit);
}
