// SPDX-License-Identifier: MIT
#include "device/ring.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/engine/queue.hpp"

using namespace ferry::device;
using ferry::core::HostRing;
using ferry::core::Producers;
using ferry::core::Queue;
using ferry::core::QueueState;
using Dwords = std::vector<std::uint32_t>;

namespace {

// ThreadSanitizer takes some forty times as long; it needs races to happen, not to happen often.
#if defined(__SANITIZE_THREAD__)
constexpr std::uint32_t kShare = 10;
#else
constexpr std::uint32_t kShare = 1;
#endif

constexpr std::uint32_t kPoison = 0xffff'ffff; // no packet begins like this

template <class Producer>
constexpr Producers kKind =
    std::is_same_v<Producer, SingleProducer> ? Producers::one : Producers::several;

std::uint32_t content(std::uint32_t producer, std::uint32_t number, std::uint64_t dword) {
  const std::uint64_t mixed =
      (std::uint64_t{producer} << 48 ^ std::uint64_t{number} << 8 ^ dword) * 0x9e37'79b9'7f4a'7c15;
  return static_cast<std::uint32_t>(mixed >> 32);
}

// A WRITE packet that says who made it; dwords >= 6.
Dwords make_packet(std::uint32_t producer, std::uint32_t number, std::uint64_t dwords) {
  WriteHeader header{};
  if (build_write(header, 0x1000, dwords - 4) != PacketStatus::ok) return {};
  Dwords packet(std::begin(header.dw), std::end(header.dw));
  packet.insert(packet.end(), {producer, number});
  while (packet.size() < dwords) packet.push_back(content(producer, number, packet.size()));
  return packet;
}

// Reads packets below the doorbell, checks that none straddles the end, and poisons what it read
// before it releases the space.
class Reader {
 public:
  explicit Reader(const RingHandle& ring) : ring_(ring) {}

  // The next packet that is no NOP; empty when there is none or `problem` was set.
  Dwords next() {
    for (Dwords packet = raw(); !packet.empty(); packet = raw()) {
      if (find_packet(packet[0])->kind != PacketKind::nop) return packet;
    }
    return {};
  }
  std::uint64_t position() const { return position_; }
  std::string problem;

 private:
  Dwords raw() {
    const std::uint64_t doorbell = load_acquire(ring_.doorbell);
    if (doorbell < doorbell_) problem = "the doorbell went back";
    if (load_acquire(ring_.wptr) < doorbell) problem = "the doorbell is ahead of wptr";
    if (doorbell - position_ >= ring_.bytes) problem = "more than a ring below the doorbell";
    doorbell_ = doorbell;
    if (position_ == doorbell || !problem.empty()) return {};
    const std::uint64_t at = (position_ & (ring_.bytes - 1)) / 4;
    const PacketInfo* const info = find_packet(ring_.base[at]);
    if (info == nullptr) problem = "a packet that was never written is below the doorbell";
    if (info == nullptr) return {};
    const std::uint64_t dwords = packet_dwords(*info, ring_.base + at);
    if (at + dwords > ring_.bytes / 4) problem = "a packet straddles the end";
    if (position_ + dwords * 4 > doorbell) problem = "the doorbell cuts a packet";
    if (!problem.empty()) return {};
    Dwords packet(ring_.base + at, ring_.base + at + dwords);
    for (std::uint64_t i = 0; i < dwords; ++i) ring_.base[at + i] = kPoison;
    position_ += dwords * 4;
    store_release(ring_.rptr, position_);
    return packet;
  }

  RingHandle ring_;
  std::uint64_t position_ = 0;
  std::uint64_t doorbell_ = 0;
};

template <class Producer>
bool post(const Producer& producer, const Dwords& packet) {
  const Reservation r = producer.reserve(packet.size() * 4);
  if (!r) return false;
  place(producer.ring(), r.offset, packet.data(), packet.size());
  producer.publish(r);
  return true;
}

// Packets of random sizes up to the longest reservation; posts until refused, reads a few.
template <class Producer>
void run_laps(std::size_t ring_bytes, std::uint64_t laps) {
  HostRing memory(ring_bytes, kKind<Producer>);
  const Producer producer(memory.handle());
  Reader reader(memory.handle());
  std::mt19937 random(static_cast<unsigned>(ring_bytes));
  std::deque<Dwords> expected;
  std::uint64_t wrong = 0;
  std::uint64_t refused = 0;
  for (std::uint32_t number = 0; reader.position() < laps * ring_bytes; ++number) {
    const Dwords packet = make_packet(1, number, 6 + random() % (ring_bytes / 8 - 5));
    for (int i = 0; i < 64 && !post(producer, packet); ++i) {
      ++refused;
      REQUIRE_FALSE(expected.empty());
      wrong += reader.next() != expected.front();
      expected.pop_front();
    }
    expected.push_back(packet);
  }
  for (; !expected.empty(); expected.pop_front()) wrong += reader.next() != expected.front();
  CHECK(reader.problem == "");
  CHECK(wrong == 0);
  CHECK(refused > laps); // the ring was full all along
}

struct Tally {
  std::uint64_t packets = 0;
  std::uint64_t wrong = 0;
  std::vector<std::uint32_t> next; // per producer
  void take(const Dwords& packet) {
    ++packets;
    const std::uint32_t producer = packet[4];
    if (producer >= next.size() || packet[5] != next[producer]) {
      ++wrong;
      return;
    }
    ++next[producer];
    wrong += packet != make_packet(producer, packet[5], packet.size());
  }
};

void run_producers(std::uint32_t producers, std::uint32_t each, std::size_t ring_bytes) {
  HostRing memory(ring_bytes, Producers::several);
  Reader reader(memory.handle());
  std::atomic<std::uint64_t> refused{0};
  std::vector<std::jthread> threads;
  for (std::uint32_t p = 0; p < producers; ++p) {
    threads.emplace_back([&, p](const std::stop_token& stop) {
      const MultiProducer producer(memory.handle());
      for (std::uint32_t n = 0; n < each; ++n) {
        const Dwords packet = make_packet(p, n, 6 + (n + p) % 9);
        for (; !post(producer, packet) && !stop.stop_requested(); std::this_thread::yield()) {
          refused.fetch_add(1, std::memory_order_relaxed);
        }
      }
    });
  }
  Tally tally;
  tally.next.resize(producers);
  for (std::uint64_t left = std::uint64_t{producers} * each; left > 0 && reader.problem.empty();) {
    const Dwords packet = reader.next();
    if (packet.empty()) std::this_thread::yield();
    if (packet.empty()) continue;
    --left;
    tally.take(packet);
  }
  for (std::jthread& thread : threads) thread.request_stop();
  threads.clear();
  CHECK(reader.problem == "");
  CHECK(tally.wrong == 0);
  CHECK(tally.packets == std::uint64_t{producers} * each);
  CHECK(tally.next == std::vector<std::uint32_t>(producers, each));
  CHECK(refused > 0); // the producers did feel the back-pressure
  CHECK(*memory.handle().arrivals == 0);
  CHECK(*memory.handle().committed == *memory.handle().reserved);
}

} // namespace

TEST_CASE("a handle is plain data that begins with size and version") {
  static_assert(std::is_trivially_copyable_v<RingHandle>);
  static_assert(offsetof(RingHandle, size) == 0 && offsetof(RingHandle, version) == 4);
  HostRing memory(4096);
  CHECK(memory.handle().size == sizeof(RingHandle));
  CHECK(memory.handle().version == kRingVersion);
  CHECK(reinterpret_cast<std::uintptr_t>(memory.handle().base) % 4096 == 0);
  CHECK(memory.handle().stamps == nullptr);
  CHECK(HostRing(4096, Producers::several).handle().stamps != nullptr);
}

TEST_CASE("a ring is a power of two of at least 64 bytes") {
  CHECK_THROWS_AS(HostRing(0), ferry::core::Failure);
  CHECK_THROWS_AS(HostRing(32), ferry::core::Failure);
  CHECK_THROWS_AS(HostRing(384), ferry::core::Failure);
  CHECK_NOTHROW(HostRing(64));
}

TEST_CASE("capacity is strict and counts the padding (row 23)") {
  HostRing memory(128);
  const RingHandle& ring = memory.handle();
  const SingleProducer producer(ring);
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Reservation r = producer.reserve(28);
    REQUIRE(r);
    CHECK(r.offset == 28 * i);
    producer.publish(r);
  }
  CHECK_FALSE(producer.reserve(28)); // 16 bytes of padding + 28
  store_release(ring.rptr, std::uint64_t{28});
  CHECK_FALSE(producer.reserve(28)); // would fill the ring to the last byte
  CHECK(*ring.reserved == 112); // a refusal leaves no trace
  store_release(ring.rptr, std::uint64_t{56});
  const Reservation r = producer.reserve(28);
  REQUIRE(r);
  CHECK(r.begin == 112);
  CHECK(r.offset == 128);
  CHECK(r.end == 156);
  CHECK(ring.base[28] == 0x0003'0000); // NOP over the 4 dwords of padding
  CHECK(ring.base[31] == 0);
  CHECK(*ring.doorbell == 112); // not published yet
  producer.publish(r);
  CHECK(*ring.doorbell == 156);
  CHECK(*ring.wptr == 156);
}

TEST_CASE("a ring is never filled to the last byte") {
  HostRing memory(128);
  const SingleProducer producer(memory.handle());
  for (int i = 0; i < 3; ++i) REQUIRE(producer.reserve(32));
  CHECK_FALSE(producer.reserve(32));
  CHECK(producer.reserve(28));
}

TEST_CASE_TEMPLATE(
    "reservations that can never be granted", Producer, SingleProducer, MultiProducer) {
  HostRing memory(256, kKind<Producer>);
  const Producer producer(memory.handle());
  CHECK_FALSE(producer.reserve(0));
  CHECK_FALSE(producer.reserve(6));
  CHECK_FALSE(producer.reserve(132));
  CHECK_FALSE(producer.reserve(~std::uint64_t{0} - 3));
  CHECK(producer.reserve(128));
}

TEST_CASE("the longest reservation fits an empty ring from any position") {
  HostRing memory(128);
  const RingHandle& ring = memory.handle();
  for (std::uint64_t at = 0; at < 128; at += 4) {
    *ring.reserved = *ring.rptr = *ring.rptr_hint = 1280 + at;
    CHECK(SingleProducer(ring).reserve(64));
  }
}

TEST_CASE("padding beyond the count of one NOP continues in single NOPs") {
  HostRing memory(std::size_t{1} << 18);
  const RingHandle& ring = memory.handle();
  const std::uint64_t from = ring.bytes - 80000;
  *ring.reserved = *ring.rptr = *ring.rptr_hint = *ring.wptr = *ring.doorbell = from;
  std::fill_n(ring.base, ring.bytes / 4, kPoison);
  REQUIRE(SingleProducer(ring).reserve(100000).offset == ring.bytes);
  CHECK(ring.base[from / 4] == 0x3fff'0000); // 16384 of the 20000 dwords
  for (std::uint64_t i = from / 4 + 1; i < ring.bytes / 4; ++i) REQUIRE(ring.base[i] == 0);
  CHECK(ring.base[0] == kPoison);
}

TEST_CASE("copies of a handle share one hint, which never goes back (row 16)") {
  HostRing memory(128);
  const RingHandle ring = memory.handle();
  const SingleProducer first(ring);
  for (int i = 0; i < 3; ++i) REQUIRE(first.reserve(32));
  store_release(ring.rptr, std::uint64_t{64});
  REQUIRE(first.reserve(32)); // did not fit the hint: rptr was read
  CHECK(*ring.rptr_hint == 64);
  store_release(ring.rptr, std::uint64_t{96});
  REQUIRE(SingleProducer(ring).reserve(28)); // fits the hint of the other copy: rptr is not read
  CHECK(*ring.rptr_hint == 64);
}

TEST_CASE("a producer that is held up holds up no other, and its packets come out first (row 18)") {
  HostRing memory(512, Producers::several);
  const RingHandle& ring = memory.handle();
  const MultiProducer producer(ring);
  const Reservation slow = producer.reserve(28);
  REQUIRE(slow);
  for (std::uint32_t n = 1; n < 4; ++n) CHECK(post(producer, make_packet(7, n, 7)));
  CHECK(*ring.doorbell == 0); // complete, but behind a reservation that is not
  const Dwords packet = make_packet(7, 0, 7);
  place(ring, slow.offset, packet.data(), packet.size());
  producer.publish(slow);
  CHECK(*ring.doorbell == 128);
  Reader reader(ring);
  for (std::uint32_t n = 0; n < 4; ++n) CHECK(reader.next() == make_packet(7, n, 7));
  CHECK(reader.next().empty());
  CHECK(reader.problem == "");
}

TEST_CASE("a producer that finds another one publishing leaves its packets to that one (row 19)") {
  HostRing memory(512, Producers::several);
  const RingHandle& ring = memory.handle();
  const MultiProducer producer(ring);
  *ring.arrivals = 1; // somebody is between its arrival and its last look
  CHECK(post(producer, make_packet(1, 0, 7)));
  CHECK(*ring.doorbell == 0);
  CHECK(*ring.arrivals == 2); // that one now finds its count outdated and looks again
  *ring.arrivals = 0;
  CHECK(post(producer, make_packet(1, 1, 7)));
  CHECK(*ring.doorbell == 64);
  CHECK(*ring.arrivals == 0);
}

TEST_CASE("once nobody is publishing, everything published was rung") {
  HostRing memory(512, Producers::several);
  const RingHandle& ring = memory.handle();
  std::atomic<int> started{0};
  std::atomic<int> finished{0};
  constexpr int kRounds = 50000;
  const auto post_one = [&ring](int pauses) {
    const MultiProducer producer(ring);
    const Reservation r = producer.reserve(32);
    for (int i = 0; i < pauses % 16; ++i) cpu_relax(); // meet in ever different places
    if (r) producer.publish(r);
  };
  std::jthread other([&] {
    for (int round = 1; round <= kRounds; ++round) {
      for (; started.load() < round;) std::this_thread::yield();
      post_one(round / 16);
      finished.store(round);
    }
  });
  int stuck = 0;
  for (int round = 1; round <= kRounds; ++round) {
    started.store(round);
    post_one(round);
    for (; finished.load() < round;) std::this_thread::yield();
    stuck += *ring.doorbell != *ring.reserved;
    store_release(ring.rptr, *ring.reserved);
  }
  CHECK(stuck == 0);
  CHECK(*ring.doorbell == kRounds * 64);
}

TEST_CASE_TEMPLATE(
    "mixed sizes over 100000 laps of tiny rings", Producer, SingleProducer, MultiProducer) {
  run_laps<Producer>(128, 100000 / kShare);
  run_laps<Producer>(256, 100000 / kShare);
  run_laps<Producer>(512, 100000 / kShare);
}

TEST_CASE("two producers") {
  run_producers(2, 250000 / kShare, 1024);
}
TEST_CASE("four producers") {
  run_producers(4, 130000 / kShare, 2048);
}
TEST_CASE("four producers on the smallest ring that takes them") {
  run_producers(4, 10000, 128);
}

TEST_CASE("a consumer believes no doorbell that cannot be") {
  const std::pair<std::uint64_t, std::string> cases[] = {
      {32 + 4100, "more than a ring ahead"},
      {38, "not a dword"},
      {28, "behind the consumer"},
      {0, "behind the consumer"}};
  for (const auto& [doorbell, text] : cases) {
    Queue queue(4096);
    queue.publish(32); // zero dwords are NOPs
    REQUIRE(queue.consume(100) == QueueState::drained);
    queue.publish(doorbell);
    CHECK(queue.consume(100) == QueueState::failed);
    CHECK(queue.failed());
    CHECK_MESSAGE(queue.error().cause.find(text) != std::string::npos, queue.error().cause);
    CHECK(queue.consumed() == 32);
  }
}

TEST_CASE("a doorbell a full ring ahead is fine, and nothing beyond it is consumed (row 21)") {
  Queue queue(4096);
  queue.publish(4096);
  *queue.ring().wptr = 4100; // a later submission that has not rung yet
  for (int i = 0; i < 2; ++i) {
    CHECK(queue.consume(5000) == QueueState::drained);
    CHECK(queue.consumed() == 4096);
  }
}
