// SPDX-License-Identifier: MIT
// Puts of a team whose rings a proxy empties: short ones by store, long ones by packets, on words
// that the stream stores sums to. A stream that carries out what it was given when it is told to
// takes the place of the GPU's.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "device/barrier.hpp"
#include "device/rma.hpp"
#include "device/team.hpp"
#include "lib/engine/queue.hpp"
#include "lib/nvidia/translator.hpp"

namespace ferry::test {

namespace {

using core::HostRing;
using core::Producers;
using device::PutStatus;
using nvidia::Translator;

constexpr std::uint64_t kBytes = 4096;
constexpr std::uint64_t kThreshold = 64;

template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

class LateStream final : public nvidia::CommandStream {
 public:
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) override {
    add([=] { std::memcpy(at<void>(to), at<void>(from), bytes); });
  }
  void fill(std::uint64_t /*to*/, std::uint32_t /*pattern*/, std::uint64_t /*bytes*/) override {
    FAIL("no put makes a fill");
  }
  void write32(std::uint64_t address, std::uint32_t value) override {
    add([=] { device::store_release(at<std::uint32_t>(address), value); });
  }
  void write64(std::uint64_t address, std::uint64_t value) override {
    add([=] { device::store_release(at<std::uint64_t>(address), value); });
  }
  void wait32(std::uint64_t /*address*/, std::uint32_t /*value*/) override {
    FAIL("no put makes a wait");
  }
  void wait64(std::uint64_t /*address*/, std::uint64_t /*value*/) override {
    FAIL("no put makes a wait");
  }
  void submit() override {}
  void carry_out() {
    for (const auto& operation : std::exchange(operations_, {})) operation();
  }
  [[nodiscard]] std::size_t waiting() const { return operations_.size(); }

 private:
  void add(std::function<void()> operation) { operations_.push_back(std::move(operation)); }
  std::vector<std::function<void()>> operations_;
};

// Rank 0 puts to rank 1. Handles as ProxyTeam makes them.
class Pair {
 public:
  Pair() {
    for (std::uint64_t rank = 0; rank < 2; ++rank) {
      Rank& mine = ranks_[rank];
      Rank& other = ranks_[1 - rank];
      mine.set.add(window(other.window.data(), kBytes));
      mine.set.add(window(other.signals.data(), sizeof other.signals));
      mine.set.add(window(&mine.landed, sizeof mine.landed));
      mine.set.add(window(mine.source.data(), kBytes));
      device::PeerHandle& peer = mine.peers[1 - rank];
      peer.ring = mine.ring.handle();
      peer.settled = peer.ring.rptr;
      peer.window = other.window.data();
      peer.signals = other.signals.data();
      mine.peers[rank].window = mine.window.data();
      mine.peers[rank].signals = mine.signals.data();
    }
  }
  device::TeamHandle handle(std::uint32_t rank) {
    Rank& mine = ranks_[rank];
    device::TeamHandle team;
    team.rank = rank;
    team.ranks = 2;
    team.peers = mine.peers.data();
    team.window_bytes = kBytes;
    team.threshold = kThreshold;
    team.counts = mine.counts.data();
    team.landed = &mine.landed;
    team.sums = mine.sums.data();
    return team;
  }
  char* source(std::uint32_t rank) { return ranks_[rank].source.data(); }
  char* window(std::uint32_t rank) { return ranks_[rank].window.data(); }
  LateStream& stream(std::uint32_t rank) { return ranks_[rank].stream; }
  // Everything that was posted becomes operations of the stream, which wait.
  void translate(std::uint32_t rank) {
    Rank& mine = ranks_[rank];
    for (auto state = Translator::State::moved; state == Translator::State::moved;) {
      state = mine.translator.advance(mine.stream, 64);
      REQUIRE(state != Translator::State::failed);
    }
  }

 private:
  static core::Window window(void* base, std::uint64_t bytes) {
    return {reinterpret_cast<std::uint64_t>(base), bytes, true, 0, 0, 0, "pair"};
  }
  struct Rank {
    std::array<char, kBytes> window{};
    std::array<char, kBytes> source{};
    std::array<std::uint64_t, device::signal_words(2)> signals{};
    std::array<std::uint64_t, device::count_words(2)> counts{};
    std::array<std::uint64_t, device::sum_words(2)> sums{};
    std::uint64_t landed = 0;
    std::array<device::PeerHandle, 2> peers{};
    core::WindowSet set;
    HostRing ring{1024, Producers::one};
    LateStream stream;
    Translator translator{ring.handle(), set};
  };
  std::array<Rank, 2> ranks_;
};

struct Waiter {
  bool operator()() const { return false; }
};

} // namespace

TEST_CASE("short puts: by store, no packet, and the signal follows the data") {
  const auto pair = std::make_unique<Pair>();
  const device::TeamHandle mine = pair->handle(0);
  const device::TeamHandle peer = pair->handle(1);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    std::memcpy(pair->source(0), &i, sizeof i);
    const auto put = device::put_signal(mine, 1, 24, pair->source(0), sizeof i, 3);
    REQUIRE(put.status == PutStatus::done);
    REQUIRE(put.ticket == 0);
    REQUIRE(device::test_signal(peer, 0, 3 * i));
    REQUIRE_FALSE(device::test_signal(peer, 0, 3 * i + 1));
    REQUIRE(std::memcmp(pair->window(1) + 24, &i, sizeof i) == 0);
  }
  pair->translate(0);
  CHECK(pair->stream(0).waiting() == 0);
}

TEST_CASE("short puts: behind a long one they ride the ring, and none overtakes it") {
  const auto pair = std::make_unique<Pair>();
  const device::TeamHandle mine = pair->handle(0);
  const device::TeamHandle peer = pair->handle(1);
  std::uint64_t signals = 0;
  for (std::uint64_t i = 1; i <= 200; ++i) {
    REQUIRE(device::put_signal(mine, 1, 0, pair->source(0), 8).ticket == 0); // by store
    REQUIRE(device::test_signal(peer, 0, ++signals));
    std::memset(pair->source(0), static_cast<int>(i), 256);
    REQUIRE(device::put_signal(mine, 1, 512, pair->source(0), 256).ticket != 0);
    REQUIRE(device::put_signal(mine, 1, 0, pair->source(0), 8, 5).ticket != 0);
    pair->translate(0);
    REQUIRE_FALSE(device::test_signal(peer, 0, signals + 1)); // nothing was carried out yet
    pair->stream(0).carry_out();
    signals += 6;
    REQUIRE(device::test_signal(peer, 0, signals));
    REQUIRE_FALSE(device::test_signal(peer, 0, signals + 1));
    REQUIRE(std::memcmp(pair->window(1) + 512, pair->source(0), 256) == 0);
    REQUIRE(device::quiet(mine, Waiter{}));
  }
}

TEST_CASE("short puts: a full ring adds nothing to the sums") {
  const auto pair = std::make_unique<Pair>();
  const device::TeamHandle mine = pair->handle(0);
  const device::TeamHandle peer = pair->handle(1);
  REQUIRE(device::signal(mine, 1, 7).status == PutStatus::done); // by store: the ring owes 7
  std::uint64_t posted = 0;
  for (; device::put_signal(mine, 1, 0, pair->source(0), kThreshold).status == PutStatus::done;) {
    ++posted;
  }
  REQUIRE(posted > 2);
  REQUIRE(device::signal(mine, 1).status == PutStatus::would_block);
  pair->translate(0);
  pair->stream(0).carry_out();
  CHECK(device::test_signal(peer, 0, 7 + posted));
  CHECK_FALSE(device::test_signal(peer, 0, 8 + posted));
}

TEST_CASE("short puts: each channel has sums of its own") {
  const auto pair = std::make_unique<Pair>();
  const device::TeamHandle mine = pair->handle(0);
  const device::TeamHandle peer = pair->handle(1);
  auto backoff = Waiter{};
  for (std::uint64_t i = 1; i <= 50; ++i) {
    REQUIRE(device::signal(mine, 1, 2).status == PutStatus::done);
    if (i % 2 == 0) {
      REQUIRE(device::put_signal(mine, 1, 64, pair->source(0), 512).status == PutStatus::done);
    }
    for (const device::Channel channel : {device::Channel::barrier, device::Channel::ready}) {
      REQUIRE(device::detail::notify(mine, 1, channel, backoff) == PutStatus::done);
    }
    pair->translate(0);
    pair->stream(0).carry_out();
    CHECK(*device::detail::own_word(peer, 0, device::Channel::barrier) == i);
    CHECK(*device::detail::own_word(peer, 0, device::Channel::ready) == i);
    CHECK(*device::detail::own_word(peer, 0, device::Channel::user) == 2 * i + i / 2);
  }
}

} // namespace ferry::test
